// The only script of our own: everything else works without one.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  button.classList.add("copied");
  button.addEventListener("blur", () => button.classList.remove("copied"), { once: true });
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all]")) return;
  for (const tick of document.querySelectorAll(".tick")) tick.checked = event.target.checked;
});

// A server that is away must not look like a button that does nothing.
const tellWhetherReachable = (isReachable) => {
  document.getElementById("unreachable").hidden = isReachable;
};
document.addEventListener("htmx:error", () => tellWhetherReachable(false));
document.addEventListener("htmx:before:request", () => tellWhetherReachable(true));
