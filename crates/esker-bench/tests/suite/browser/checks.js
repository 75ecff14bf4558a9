// What a reader sees of the page that is open: charts, the width of the page, and the contrast of every text. Gives a JSON text.
(() => {
  const problems = [];
  const complain = (what, element) => {
    if (problems.length < 20) problems.push(what + ": " + describe(element));
  };
  const describe = (element) =>
    element.tagName.toLowerCase() + "." + (element.getAttribute("class") || "") + " " +
    JSON.stringify((element.textContent || "").trim().slice(0, 60));
  const box = (element) => element.getBoundingClientRect();

  // What is folded is looked at too.
  document.querySelectorAll("details").forEach((details) => { details.open = true; });

  // Every chart has a size and marks, and its marks lie inside it.
  const SLACK = 2;
  let charts = 0, marks = 0;
  const colours = new Set();
  document.querySelectorAll(".bars, svg.plot:not(.sample), table.heat").forEach((chart) => {
    charts += 1;
    const outer = box(chart);
    if (outer.width <= 0 || outer.height <= 0) complain("a chart without a size", chart);
    const kind = chart.matches("svg") ? "polyline, polygon, path, circle" : chart.matches("table") ? ".mark" : ".bar";
    const inside = [...chart.querySelectorAll(kind)];
    if (inside.length === 0 && !chart.querySelector(".bar-row")) complain("a chart without marks", chart);
    inside.forEach((mark) => {
      marks += 1;
      const inner = box(mark);
      if (inner.width <= 0 && inner.height <= 0) complain("a mark without a size", mark);
      const scrolls = chart.closest(".scroll");
      const out = inner.left < outer.left - SLACK || inner.top < outer.top - SLACK ||
        inner.right > outer.right + SLACK || inner.bottom > outer.bottom + SLACK;
      if (out) complain("a mark outside its chart", mark);
      if (chart.matches("table")) colours.add(getComputedStyle(mark).backgroundColor);
      if (!scrolls && inner.right > window.innerWidth + SLACK) complain("a mark outside the page", mark);
    });
  });

  // Nothing but the containers for it scrolls sideways.
  const width = document.documentElement.scrollWidth;
  if (width > window.innerWidth) {
    complain("the page is " + width + " wide in " + window.innerWidth, document.body);
    document.querySelectorAll("body *").forEach((element) => {
      if (!element.closest(".scroll") && box(element).right > window.innerWidth + 1) complain("too wide", element);
    });
  }

  // What scrolls shows that there is more, and the column that must stay in sight does.
  document.querySelectorAll(".scroll").forEach((scroll) => {
    if (scroll.scrollWidth <= scroll.clientWidth + 1) return;
    const pinned = [...scroll.querySelectorAll("th.pinned")];
    const cue = pinned.length > 0 ? pinned.every((cell) => getComputedStyle(cell).boxShadow !== "none")
      : getComputedStyle(scroll).backgroundImage.includes("gradient");
    if (!cue) complain("a table that scrolls without showing it", scroll);
    pinned.forEach((cell) => {
      if (box(cell).left < 0 || box(cell).right > box(scroll).right + 1) complain("a pinned column out of sight", cell);
    });
  });

  // A heat map is seen as a whole.
  document.querySelectorAll(".map").forEach((map) => {
    if (map.scrollWidth > map.clientWidth + 1) complain("a heat map that has to be scrolled", map);
  });

  // Colours as numbers, whatever form they are given in: by painting them.
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const parse = (colour) => {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      known.set(colour, [...context.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const over = (above, below) => {
    const alpha = above[3] / 255;
    return [0, 1, 2].map((i) => above[i] * alpha + below[i] * (1 - alpha)).concat(255);
  };
  const behind = new Map([[null, [255, 255, 255, 255]]]);
  const background = (element) => {
    if (!behind.has(element)) {
      const own = parse(getComputedStyle(element).backgroundColor);
      behind.set(element, own[3] === 255 ? own : over(own, background(element.parentElement)));
    }
    return behind.get(element);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, two) => {
    const [a, b] = [luminance(one), luminance(two)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  let texts = 0, least = 21;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const size = box(element);
    if (!walker.currentNode.data.trim() || size.width <= 1 || size.height <= 1) continue;
    const style = getComputedStyle(element);
    if (style.visibility === "hidden") continue;
    texts += 1;
    const below = background(element);
    const ratio = contrast(over(parse(element.closest("svg") ? style.fill : style.color), below), below);
    least = Math.min(least, ratio);
    if (ratio < 4.5) complain("a text with a contrast of " + ratio.toFixed(2), element);
  }

  return JSON.stringify({
    problems, charts, marks, colours: colours.size, texts, least,
    background: getComputedStyle(document.body).backgroundColor,
    height: document.documentElement.scrollHeight,
  });
})()
