// <form data-confirm="Question?" data-confirm-text="What follows." data-confirm-yes="Delete" data-confirm-danger>
// Asks before it posts. Without script the form posts at once, so a verb behind it must be safe to undo or ask itself.
export function confirmSubmits(root) {
  const dialog = root.querySelector("[data-confirm-dialog]");
  if (!dialog) return;
  root.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.confirm || form.dataset.confirmed) return;
    event.preventDefault();
    const { submitter } = event;
    if (!(await ask(dialog, form.dataset))) return;
    form.dataset.confirmed = "yes";
    form.requestSubmit(submitter);
  });
}

export function ask(dialog, { confirm, confirmText = "", confirmYes, confirmDanger }) {
  const yes = dialog.querySelector("[data-confirm-yes]");
  dialog.querySelector("h2").textContent = confirm;
  dialog.querySelector("[data-confirm-text]").textContent = confirmText;
  if (confirmYes) yes.textContent = confirmYes;
  yes.classList.toggle("btn-danger", confirmDanger !== undefined);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true });
  });
}
