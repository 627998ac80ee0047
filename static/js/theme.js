// Loaded in the head and blocking, so that the remembered theme is there before the first paint.
document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("panelbench.theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's preference holds.
}
