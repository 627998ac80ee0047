// What every page can do. Each part finds its own markup and stays away when there is none.
import { confirmSubmits } from "./confirm.js";
import { openDialogs } from "./dialogs.js";
import { chooseFolders } from "./folder.js";
import { switchTheme } from "./theme_switch.js";
import { showUploads } from "./upload.js";
import { copyTexts, submitOnChange } from "./controls.js";

switchTheme(document);
openDialogs(document);
confirmSubmits(document);
showUploads(document);
chooseFolders(document);
copyTexts(document);
submitOnChange(document);
