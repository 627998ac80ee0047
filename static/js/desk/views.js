// Phones show the dialogue or the rubric; wide screens show both and ignore this.
// Returns the function that shows one of the two.
export function switchViews(root, first) {
  const links = [...root.querySelectorAll("[data-shows]")];
  const show = (view) => {
    root.body.dataset.view = view;
    for (const link of links) {
      if (link.dataset.shows === view) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      show(link.dataset.shows);
      window.scrollTo(0, 0);
    });
  }
  show(first);
  return show;
}
