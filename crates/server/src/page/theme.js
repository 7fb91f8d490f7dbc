// Sets the chosen theme before the first paint, so that a dark page never flashes white; that's why it isn't a module.
try {
  const { theme } = JSON.parse(localStorage.getItem("turbospark") ?? "{}");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage, or not ours: the system's theme it is.
}
