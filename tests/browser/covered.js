// What of the page is covered, cut off or over the edge: a list of sentences, empty when nothing is.
() => {
  const found = [];
  const named = (element) => `<${element.tagName.toLowerCase()}> ${(element.textContent || element.name || "").trim().slice(0, 40)}`;
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
  // What is seen of a box: scrolling and clipping ancestors cut it.
  const seen = (element, box) => {
    let { left, top, right, bottom } = box;
    for (let one = element; one && one !== document.documentElement; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.visibility === "hidden" || style.clipPath !== "none") return null;
      if (one === element && box.text === undefined) continue;
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const edge = one.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, edge.left), Math.max(top, edge.top), Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
    }
    return right - left > 1 && bottom - top > 1 ? { left, top, right, bottom, element } : null;
  };
  const boxes = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest("option, noscript, script, svg, .skip, datalist")) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    for (const rect of range.getClientRects()) {
      // Of a line its letters, not the room above and below them.
      const slack = Math.max(0, (rect.height - 10) / 2);
      const box = seen(element, { left: rect.left, right: rect.right, top: rect.top + slack, bottom: rect.bottom - slack, text: true });
      if (box) boxes.push(box);
    }
    const block = element.closest("p, li, h1, h2, h3, dd, dt, td, button, a, label, summary, pre, span");
    const style = block && getComputedStyle(block);
    if (block && style.overflowX === "hidden" && block.scrollWidth > block.clientWidth + 1 && !block.matches(".unseen")) found.push(`cut off: ${named(block)}`);
  }
  for (const element of document.querySelectorAll("a, button, input, select, textarea, summary, canvas")) {
    if (!element.checkVisibility() || element.closest(".skip") || element.type === "hidden" || element.closest("svg")) continue;
    for (const rect of element.getClientRects()) {
      const box = seen(element, rect);
      if (box) boxes.push(box);
      if (rect.right > innerWidth + 1 && !element.closest(".scroll")) found.push(`over the edge: ${named(element)}`);
    }
  }
  for (let i = 0; i < boxes.length; i += 1) for (let j = 0; j < i; j += 1) {
    const [a, b] = [boxes[i], boxes[j]];
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (width <= 2 || height <= 2 || a.element.contains(b.element) || b.element.contains(a.element)) continue;
    found.push(`${named(a.element)} and ${named(b.element)} overlap`);
  }
  // Whatever stays in place while the page scrolls must not lie over what scrolls, but for the bar over a list, which
  // leaves nothing to be seen beside it.
  for (let y = 0; ; y += innerHeight * 0.7) {
    scrollTo(0, y);
    for (const element of document.querySelectorAll("main h2, main p, main a, main button, main input, main select, main td, main dd, main label")) {
      if (!element.checkVisibility() || element.closest("svg, .unseen, .scroll, .long, .prompt, .hud")) continue;
      const rect = element.getClientRects()[0];
      if (!rect || rect.width < 3) continue;
      const [x, z] = [(rect.left + rect.right) / 2, (rect.top + rect.bottom) / 2];
      if (x < 0 || x >= innerWidth || z < 0 || z >= innerHeight) continue;
      const top = document.elementFromPoint(x, z);
      if (top && !element.contains(top) && !top.contains(element) && !top.closest("#several")) found.push(`${named(element)} is under ${named(top)}`);
    }
    if (y + innerHeight >= document.documentElement.scrollHeight) break;
  }
  scrollTo(0, 0);
  return [...new Set(found)].slice(0, 8);
}
