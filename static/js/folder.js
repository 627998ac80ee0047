// button[data-chooses-folder]: puts every file of a chosen folder into the file input of that id, but for hidden ones.
export function chooseFolders(root) {
  for (const button of root.querySelectorAll("[data-chooses-folder]")) {
    const folder = Object.assign(document.createElement("input"), { type: "file", multiple: true });
    if (!("webkitdirectory" in folder)) continue; // the button stays hidden
    folder.webkitdirectory = true;
    folder.addEventListener("change", () => fill(document.getElementById(button.dataset.choosesFolder), folder));
    button.addEventListener("click", () => folder.click());
    button.hidden = false;
  }
}

function fill(input, folder) {
  const files = new DataTransfer();
  for (const file of folder.files) {
    if (!/(^|\/)\./.test(file.webkitRelativePath)) files.items.add(file);
  }
  folder.value = "";
  input.files = files.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}
