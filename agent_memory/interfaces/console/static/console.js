// Our only script. The console also works without it.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  button.classList.add("copied");
  button.addEventListener("blur", () => button.classList.remove("copied"), { once: true });
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all], .tick")) return;
  if (event.target.matches("[data-all]")) for (const tick of document.querySelectorAll(".tick")) tick.checked = event.target.checked;
  document.querySelector("[data-chosen]").textContent = document.querySelectorAll(".tick:checked").length;
});

// If the server does not answer, say so. Otherwise a button seems to do nothing.
const showReachability = (isReachable) => {
  document.getElementById("unreachable").hidden = isReachable;
};
document.addEventListener("htmx:error", () => showReachability(false));
document.addEventListener("htmx:before:request", () => showReachability(true));
// A stopping server answers in JSON, which must not replace the page.
document.addEventListener("htmx:before:response", (event) => {
  const { status, headers } = event.detail.ctx.response;
  if (status < 500 || headers.get("content-type")?.startsWith("text/html")) return;
  event.preventDefault();
  showReachability(false);
});

// Charts: the server sends lines as SVG. uPlot adds axes, and the values under the pointer.
const charts = new Set();
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const COLORS = ["--accent", "--warn"];

const loadPlotter = async (holder) => {
  if (window.uPlot) return;
  const styles = Object.assign(document.createElement("link"), { rel: "stylesheet", href: holder.dataset.uplotCss });
  const script = Object.assign(document.createElement("script"), { src: holder.dataset.uplot });
  await Promise.all([styles, script].map((element) => new Promise((resolve) => {
    element.onload = resolve;
    document.head.append(element);
  })));
};

const drawChart = (box) => {
  const { begin, step, rows, low, high, unit } = JSON.parse(box.dataset.chart);
  const caption = box.parentElement.querySelector("[data-value]");
  const language = document.documentElement.lang;
  const notation = high < 10_000 || high - low < high / 50 ? "standard" : "compact";
  const tick = new Intl.NumberFormat(language, { notation, maximumFractionDigits: 1 });
  const middle = (low + high) / 2;
  const margin = (high - low) / 25; // keep lines at the end of the scale fully visible
  const exact = new Intl.NumberFormat(language, { maximumFractionDigits: unit === "ms" ? 1 : 0 });
  const time = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const showValue = (plot) => {
    const at = plot.cursor.idx;
    const values = at === null || at === undefined ? [] : plot.data.slice(1).map((row) => row[at]);
    const texts = values.map((value) => (value === null ? "–" : `${exact.format(value)} ${unit}`.trim()));
    caption.textContent = texts.length ? `${time.format(plot.data[0][at] * 1000)} · ${texts.join(" / ")}` : caption.dataset.value;
  };
  const axis = { stroke: () => color("--muted"), font: "11px Inter, sans-serif", ticks: { show: false } };
  box.replaceChildren();
  const plot = new uPlot({
    width: box.clientWidth,
    height: box.clientHeight,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "load" }, drag: { x: false, y: false }, y: false, points: { size: 6 } },
    scales: { y: { range: [low - margin, high + margin] } },
    series: [{}, ...rows.map((_, index) => ({ stroke: () => color(COLORS[index]), width: 1.5, points: { show: false } }))],
    axes: [
      { ...axis, grid: { show: false }, size: 20, gap: 4, space: 64, values: (_, splits) => splits.map((at) => time.format(at * 1000)) },
      { ...axis, grid: { stroke: () => color("--line"), width: 1 }, size: 48, gap: 6, splits: () => (Number.isInteger(middle) ? [low, middle, high] : [low, high]), values: (_, splits) => splits.map((value) => tick.format(value)) },
    ],
    hooks: { setCursor: [showValue] },
  }, [rows[0].map((_, index) => begin + index * step), ...rows], box);
  const sized = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: box.clientHeight }));
  sized.observe(box);
  charts.add({ box, plot, sized });
};

const drawCharts = async () => {
  for (const chart of charts) {
    if (chart.box.isConnected) continue;
    chart.sized.disconnect();
    chart.plot.destroy();
    charts.delete(chart);
  }
  const holder = document.querySelector("[data-uplot]");
  if (!holder) return;
  await loadPlotter(holder);
  for (const box of holder.querySelectorAll("[data-chart]:not(:has(.uplot))")) drawChart(box);
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const { plot } of charts) plot.redraw(false, true);
});

// Live counters: keep one stream open while the tab is visible and has counters.
let stream;
let retry;
const showCounters = ({ data }) => {
  const counters = JSON.parse(data);
  for (const each of document.querySelectorAll("[data-live]")) {
    const text = counters[each.dataset.live];
    if (text !== undefined && each.textContent !== text) each.textContent = text;
  }
  for (const each of document.querySelectorAll("[data-live-width]")) each.setAttribute("width", counters[each.dataset.liveWidth]);
  for (const each of document.querySelectorAll("[data-live-state]")) each.className = `dot ${counters.state}`;
};
const follow = () => {
  const address = document.hidden ? undefined : document.querySelector("[data-live-url]")?.dataset.liveUrl;
  if (stream?.address === address && stream?.source.readyState !== EventSource.CLOSED) return;
  clearTimeout(retry);
  stream?.source.close();
  stream = undefined;
  if (!address) return;
  const source = new EventSource(address);
  stream = { address, source };
  source.onmessage = showCounters;
  // Browsers reconnect automatically, except after a refusal.
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(follow, 15_000);
  };
};
document.addEventListener("visibilitychange", follow);
const enliven = () => {
  follow();
  drawCharts();
};
// After an action, scroll to the changed line, because the page was fetched again.
document.addEventListener("htmx:after:settle", () => document.querySelector(".saved")?.scrollIntoView({ block: "center" }));
document.addEventListener("htmx:after:settle", enliven);
document.addEventListener("htmx:after:history:update", enliven);
enliven();
