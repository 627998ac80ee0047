// Reading queue: a letter presses the control with that data-key, unless somebody is typing or holds a modifier.
export function listen(root = document) {
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, dialog[open]")) return;
    const control = root.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!control) return;
    event.preventDefault();
    control.click();
  });
}

listen();
