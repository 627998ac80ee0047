// [data-opens="id"] shows that dialog; [data-closes] inside one closes it, and so does a press on the backdrop.
export function openDialogs(root) {
  root.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) {
      event.preventDefault();
      root.getElementById(opener.dataset.opens).showModal();
      return;
    }
    const dialog = event.target.closest("dialog");
    if (dialog && (event.target === dialog || event.target.closest("[data-closes]"))) dialog.close();
  });
}
