// [data-copies="id"] copies that element's text and says so; form[data-submits-on-change] submits when a filter changes.
export function copyTexts(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copies]");
    if (!button) return;
    const source = root.getElementById(button.dataset.copies);
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = button.dataset.copied;
  });
}

export function submitOnChange(root) {
  root.addEventListener("change", (event) => {
    event.target.closest("form[data-submits-on-change]")?.requestSubmit();
  });
}
