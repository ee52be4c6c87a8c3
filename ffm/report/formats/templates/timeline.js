/* Draws the run in time on a canvas: lanes of threads and streams, and the critical path through them. */
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const frame = document.getElementById("timeline"), canvas = frame.querySelector("canvas");
  const told = frame.querySelector("output"), paint = canvas.getContext("2d");
  const HEAD = 22, ROW = 24, BAR = 16, LABEL = 150;
  const rows = ["critical path", ...data.lanes];
  const ticks = data.length / data.tick;
  const shortest = Math.max(ticks / 1e6, 20);
  let from = 0, to = ticks, width = 0;

  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const atPixel = x => from + (x - LABEL) / (width - LABEL) * (to - from);
  const toPixel = tick => LABEL + (tick - from) / (to - from) * (width - LABEL);
  const rowTop = row => HEAD + row * ROW + (ROW - BAR) / 2;

  function time(seconds) {
    const size = Math.abs(seconds);
    if (size >= 1 || size === 0) return seconds.toFixed(3) + " s";
    return size >= 1e-3 ? (seconds * 1e3).toFixed(3) + " ms" : (seconds * 1e6).toFixed(1) + " µs";
  }

  /* A time on the scale, with as many digits as its distance to the next one needs. */
  function mark(seconds, every) {
    const [unit, name] = every >= 0.1 ? [1, " s"] : every >= 1e-4 ? [1e3, " ms"] : [1e6, " µs"];
    return (seconds * unit).toFixed(Math.max(0, -Math.floor(Math.log10(every * unit) + 1e-9))) + name;
  }

  function step(range) {
    const wanted = range / Math.max(1, Math.floor((width - LABEL) / 110));
    const power = Math.pow(10, Math.floor(Math.log10(wanted)));
    return [1, 2, 5, 10].map(factor => factor * power).find(each => each >= wanted);
  }

  function spans(columns, row, colors) {
    for (let i = 0; i < columns.begin.length; i++) {
      const begin = columns.begin[i], end = begin + columns.length[i];
      if (end < from || begin > to) continue;
      const left = Math.max(toPixel(begin), LABEL), right = Math.min(toPixel(end), width);
      paint.fillStyle = colors[columns.kind[i]];
      paint.globalAlpha = columns.count[i] > 1 ? 0.6 : 1;
      paint.fillRect(left, rowTop(row === null ? columns.lane[i] + 1 : row), Math.max(right - left, 0.5), BAR);
    }
    paint.globalAlpha = 1;
  }

  function route() {
    const path = data.path;
    paint.strokeStyle = style("--path");
    paint.lineWidth = 2;
    paint.beginPath();
    let wide = false; // where the path often changes lanes within few pixels, its crossings would hide the lanes
    for (let i = 0; i < path.begin.length; i++) {
      const begin = path.begin[i], end = begin + path.length[i];
      if (end < from || begin > to || path.lane[i] < 0) { wide = false; continue; }
      const y = rowTop(path.lane[i] + 1) + BAR + 2;
      const left = Math.max(toPixel(begin), LABEL), right = Math.min(toPixel(end), width);
      if (wide) paint.lineTo(left, y); else paint.moveTo(left, y);
      paint.lineTo(right, y);
      const next = i + 1 < path.begin.length ? path.length[i + 1] : 0;
      wide = (path.length[i] + next) / (to - from) * (width - LABEL) > 6;
    }
    paint.stroke();
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1, height = HEAD + rows.length * ROW + 4;
    width = frame.clientWidth;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.height = height + "px";
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.clearRect(0, 0, width, height);
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    const colors = data.kinds.map(kind => style("--" + kind)), faint = style("--faint"), rule = style("--rule");
    const every = step((to - from) * data.tick);
    for (let number = Math.ceil(from * data.tick / every); number * every <= to * data.tick; number++) {
      const x = toPixel(number * every / data.tick);
      paint.fillStyle = rule; paint.fillRect(x, HEAD - 4, 1, height - HEAD);
      paint.fillStyle = faint; paint.textAlign = x > width - 40 ? "right" : "center";
      paint.fillText(mark(number * every, every), x, HEAD / 2);
    }
    spans(data.spans, null, colors);
    spans(data.path, 0, colors);
    route();
    paint.textAlign = "left";
    rows.forEach((name, row) => {
      paint.fillStyle = style("--back"); paint.fillRect(0, HEAD + row * ROW, LABEL, ROW);
      paint.fillStyle = row ? style("--text") : style("--path");
      paint.fillText(name, 0, rowTop(row) + BAR / 2, LABEL - 8);
    });
  }

  function view(begin, end) {
    const span = Math.min(Math.max(end - begin, shortest), ticks);
    from = Math.min(Math.max((begin + end - span) / 2, 0), ticks - span);
    to = from + span;
    window.requestAnimationFrame(draw);
  }
  const zoom = (factor, around) => view(around - (around - from) * factor, around + (to - around) * factor);
  const move = share => view(from + share * (to - from), to + share * (to - from));
  const middle = () => (from + to) / 2;

  function under(x, y) {
    const row = Math.floor((y - HEAD) / ROW), columns = row === 0 ? data.path : data.spans;
    if (row < 0 || row >= rows.length || x < LABEL) return "";
    const tick = atPixel(x), slack = (to - from) / (width - LABEL);
    let best = -1;
    for (let i = 0; i < columns.begin.length; i++) {
      if (row > 0 && columns.lane[i] !== row - 1) continue;
      const begin = columns.begin[i], end = begin + columns.length[i];
      if (tick >= begin - slack && tick <= end + slack && (best < 0 || columns.length[i] <= columns.length[best])) best = i;
    }
    if (best < 0) return time(tick * data.tick);
    const kind = data.kinds[columns.kind[best]], name = data.names[columns.name[best]], count = columns.count[best];
    const named = name && ["call", "kernel", "transfer", "cpu"].includes(kind); // its name says what it is
    const sort = { call: "traced calls", cpu: "CPU work", wait: "waiting", problem: "waiting with a problem",
      kernel: "kernels", transfer: "transfers" }[kind] || kind;
    const what = count > 1 ? [count.toLocaleString("en") + " pieces, mostly " + sort] : named ? [] : [sort];
    return (name ? [...what, name] : what).join(": ") + ", " + time(columns.length[best] * data.tick) + " at " +
      time(columns.begin[best] * data.tick);
  }

  let held = null;
  canvas.addEventListener("pointerdown", event => { held = event.offsetX; canvas.setPointerCapture(event.pointerId); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
  canvas.addEventListener("pointermove", event => {
    if (held !== null) { move((held - event.offsetX) / (width - LABEL)); held = event.offsetX; }
    told.textContent = under(event.offsetX, event.offsetY);
  });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, atPixel(Math.max(event.offsetX, LABEL)));
  }, { passive: false });
  canvas.addEventListener("dblclick", event => zoom(0.25, atPixel(Math.max(event.offsetX, LABEL))));
  canvas.addEventListener("keydown", event => {
    const does = { "+": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), "0": () => view(0, ticks),
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2) }[event.key];
    if (does) { event.preventDefault(); does(); }
  });
  frame.querySelector(".closer").addEventListener("click", () => zoom(0.5, middle()));
  frame.querySelector(".farther").addEventListener("click", () => zoom(2, middle()));
  frame.querySelector(".whole").addEventListener("click", () => view(0, ticks));
  new ResizeObserver(draw).observe(frame);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
