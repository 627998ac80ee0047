// [data-theme-switch]: the other theme, remembered; back on the system's own, the memory is dropped.
const KEY = "panelbench.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export function otherTheme(root = document.documentElement) {
  const current = root.dataset.theme || (dark.matches ? "dark" : "light");
  return current === "dark" ? "light" : "dark";
}

export function switchTheme(root) {
  for (const button of root.querySelectorAll("[data-theme-switch]")) {
    button.addEventListener("click", () => remember(otherTheme()));
  }
}

function remember(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    if (theme === (dark.matches ? "dark" : "light")) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Private windows may refuse; the choice then lasts for this page.
  }
}
