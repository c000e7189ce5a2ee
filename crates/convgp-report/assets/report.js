// Leaves marks for whoever checks the page: which figures have a size and whole pictures, what was fetched, whether
// anything sticks out. The page needs none of this to be read.
document.addEventListener("error", (event) => { event.target.dataset.broken = "true"; }, true);
window.addEventListener("load", () => {
  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const svg = figure.querySelector("svg");
    const box = svg ? svg.getBoundingClientRect() : { width: 0, height: 0 };
    const drawn = svg !== null && svg.querySelector("text, path, polyline, rect, image") !== null;
    const whole = figure.querySelector("[data-broken]") === null;
    figure.dataset.rendered = String(drawn && whole && box.width > 100 && box.height > 40);
  }
  const root = document.documentElement;
  const fetched = performance.getEntriesByType("resource").filter((entry) => !entry.name.startsWith("data:"));
  root.dataset.fetched = String(fetched.length);
  root.dataset.overflow = String(root.scrollWidth > root.clientWidth);
});
