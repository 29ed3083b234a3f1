// The only script of our own: everything else works without one.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  button.classList.add("copied");
  button.addEventListener("blur", () => button.classList.remove("copied"), { once: true });
});
