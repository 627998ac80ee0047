// .upload: names the chosen files in its <output>, and takes files dropped on it.
export function showUploads(root) {
  for (const zone of root.querySelectorAll(".upload")) {
    const input = zone.querySelector("input[type=file]");
    const chosen = zone.querySelector("output");
    const name = () => {
      chosen.textContent = [...input.files].map((file) => file.name).join(", ");
    };
    input.addEventListener("change", name);
    zone.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.dataset.over = "";
    });
    zone.addEventListener("dragleave", () => delete zone.dataset.over);
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      delete zone.dataset.over;
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
}
