// The graph of linked memories: a small force layout on a canvas, walked with the mouse, fingers or keys.
(() => {
  "use strict";
  const frame = document.getElementById("graph");
  if (!frame) return;
  frame.hidden = false;
  const canvas = frame.querySelector("canvas");
  const card = document.getElementById("graph-card");
  const counted = document.getElementById("graph-count");
  const form = document.getElementById("graph-form");
  const pen = canvas.getContext("2d");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const most = Number(frame.dataset.most);
  const centre = frame.dataset.centre;
  const nodes = new Map();
  let links = [];
  let chosen = null;
  let hovered = null;
  let heat = 0;
  let running = false;
  let view = { x: 0, y: 0, scale: 1 };
  let placed = false;
  let colours = {};

  // --- data ------------------------------------------------------------------------------------------------

  const merge = (data, around) => {
    const from = nodes.get(around);
    data.nodes.forEach((given, number) => {
      if (nodes.has(given.id) || nodes.size >= most) return;
      // A spiral of sunflower seeds: no two begin at one place, and the same graph begins the same way.
      const angle = number * 2.399963;
      const far = 26 * Math.sqrt(number + 1);
      nodes.set(given.id, {
        ...given,
        x: (from?.x ?? 0) + far * Math.cos(angle),
        y: (from?.y ?? 0) + far * Math.sin(angle),
        vx: 0,
        vy: 0,
        degree: 0,
      });
    });
    const known = new Set(links.map((link) => `${link.source.id} ${link.target.id} ${link.type}`));
    data.links.forEach((link) => {
      const source = nodes.get(link.source);
      const target = nodes.get(link.target);
      const key = `${link.source} ${link.target} ${link.type}`;
      if (!source || !target || known.has(key)) return;
      known.add(key);
      source.degree += 1;
      target.degree += 1;
      links.push({ ...link, source, target });
    });
    counted.textContent = `${nodes.size} memories, ${links.length} links${data.cut ? "; there are more: expand what interests you" : ""}.`;
    warm(1);
  };

  const load = async (address, around) => {
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      merge(await answer.json(), around);
    } catch {
      counted.textContent = "The graph cannot be loaded now; the list below still works.";
    }
  };

  const wanted = () => new URLSearchParams(new FormData(form));

  const expand = (node) => {
    const asked = wanted();
    asked.set("id", node.id);
    asked.set("limit", "60");
    node.expanded = true;
    load(`/graph/data?${asked}`, node.id);
  };

  // --- layout ----------------------------------------------------------------------------------------------

  const tick = () => {
    const list = [...nodes.values()];
    for (let i = 0; i < list.length; i += 1) {
      const a = list[i];
      for (let j = i + 1; j < list.length; j += 1) {
        const b = list[j];
        let dx = a.x - b.x;
        let dy = a.y - b.y;
        let square = dx * dx + dy * dy;
        if (square > 160000) continue;
        if (square < 1) { dx = 1; dy = 0.5; square = 1.25; }
        const push = (1500 * heat) / square;
        a.vx += dx * push / 20; a.vy += dy * push / 20;
        b.vx -= dx * push / 20; b.vy -= dy * push / 20;
      }
      a.vx -= a.x * 0.004 * heat;
      a.vy -= a.y * 0.004 * heat;
    }
    links.forEach(({ source, target, strength }) => {
      const dx = target.x - source.x;
      const dy = target.y - source.y;
      const length = Math.hypot(dx, dy) || 1;
      const busy = Math.sqrt(Math.min(source.degree, target.degree) || 1);
      const pull = ((length - 90) / length) * 0.11 * heat * (0.4 + strength) / busy;
      source.vx += dx * pull; source.vy += dy * pull;
      target.vx -= dx * pull; target.vy -= dy * pull;
    });
    list.forEach((node) => {
      if (node === dragged) { node.vx = node.vy = 0; return; }
      const speed = Math.hypot(node.vx, node.vy);
      const most = speed > 30 ? 30 / speed : 1;
      node.x += node.vx * most;
      node.y += node.vy * most;
      node.vx *= 0.62;
      node.vy *= 0.62;
    });
    heat *= 0.985;
  };

  const warm = (to) => {
    heat = Math.max(heat, to);
    if (still.matches) {
      while (heat > 0.02) tick();
      if (!placed) fit();
      draw();
    } else if (!running) {
      running = true;
      requestAnimationFrame(run);
    }
  };

  const run = () => {
    tick();
    tick();
    if (!placed) fit();
    draw();
    if (heat < 0.02) { running = false; return; }
    requestAnimationFrame(run);
  };

  // --- drawing ---------------------------------------------------------------------------------------------

  const paint = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = {
      sheet: of("sheet"), ink: of("ink"), soft: of("soft"), line: of("line-strong"), accent: of("accent"),
      fact: of("fact"), preference: of("preference"), pattern: of("pattern"), decision: of("decision"), note: of("note"),
      supports: of("good"), contradicts: of("bad"), sans: of("sans"),
    };
    draw();
  };

  const size = () => {
    const ratio = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    if (!placed) view = { x: box.width / 2, y: box.height / 2, scale: view.scale };
    draw();
  };

  const fit = () => {
    const list = [...nodes.values()];
    if (!list.length) return;
    const box = canvas.getBoundingClientRect();
    const xs = list.map((node) => node.x);
    const ys = list.map((node) => node.y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    const scale = Math.min(2, (box.width - 90) / (right - left + 1), (box.height - 90) / (bottom - top + 1));
    view = {
      scale,
      x: box.width / 2 - ((left + right) / 2) * scale,
      y: box.height / 2 - ((top + bottom) / 2) * scale,
    };
  };

  const radius = (node) => (node.id === centre ? 10 : 5 + Math.min(5, Math.sqrt(node.degree)));

  const draw = () => {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.translate(view.x, view.y);
    pen.scale(view.scale, view.scale);
    const near = new Set();
    links.forEach(({ source, target, type, strength }) => {
      const lit = chosen && (source === chosen || target === chosen);
      if (lit) { near.add(source); near.add(target); }
      pen.strokeStyle = colours[type] ?? colours.line;
      pen.globalAlpha = lit ? 0.95 : (chosen ? 0.16 : 0.22 + 0.4 * strength);
      pen.lineWidth = (lit ? 1.8 : 1) / Math.sqrt(view.scale);
      pen.beginPath();
      pen.moveTo(source.x, source.y);
      pen.lineTo(target.x, target.y);
      pen.stroke();
    });
    nodes.forEach((node) => {
      pen.globalAlpha = !chosen || node === chosen || near.has(node) ? 1 : 0.35;
      pen.fillStyle = colours[node.type] ?? colours.note;
      pen.beginPath();
      pen.arc(node.x, node.y, radius(node), 0, 7);
      pen.fill();
      pen.lineWidth = node === chosen ? 3 : 1.5;
      pen.strokeStyle = node === chosen ? colours.ink : colours.sheet;
      pen.stroke();
      if (node.id === centre && node !== chosen) {
        pen.strokeStyle = colours.accent;
        pen.lineWidth = 2;
        pen.beginPath();
        pen.arc(node.x, node.y, radius(node) + 3.5, 0, 7);
        pen.stroke();
      }
    });
    pen.globalAlpha = 1;
    pen.textAlign = "center";
    pen.font = `${12 / view.scale}px ${colours.sans}`;
    // Labels stand within the picture and never on one another: the first ones have their place.
    const first = [chosen, hovered, nodes.get(centre)].filter(Boolean);
    const others = view.scale > 1.6 && nodes.size < 160 ? [...nodes.values()] : [];
    const taken = [];
    new Set([...first, ...others]).forEach((node) => {
      let text = node.text.length > 44 ? `${node.text.slice(0, 43)}…` : node.text;
      const room = canvas.width / ratio - 12;
      while (text.length > 2 && pen.measureText(text).width * view.scale > room) text = `${text.slice(0, -2)}…`;
      const half = (pen.measureText(text).width * view.scale) / 2;
      const middle = Math.min(Math.max(node.x * view.scale + view.x, half + 6), canvas.width / ratio - half - 6);
      const below = (node.y + radius(node)) * view.scale + view.y;
      const box = [middle - half, below + 2, middle + half, below + 18];
      if (taken.some((one) => box[0] < one[2] && one[0] < box[2] && box[1] < one[3] && one[1] < box[3])) return;
      taken.push(box);
      const [x, y] = [(middle - view.x) / view.scale, (below + 14 - view.y) / view.scale];
      pen.lineWidth = 4 / view.scale;
      pen.strokeStyle = colours.sheet;
      pen.lineJoin = "round";
      pen.strokeText(text, x, y);
      pen.fillStyle = colours.ink;
      pen.fillText(text, x, y);
    });
  };

  // --- choosing --------------------------------------------------------------------------------------------

  const part = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

  const choose = (node) => {
    chosen = node;
    card.hidden = !node;
    if (node) {
      const about = part("p", `${node.type} · ${node.day}`, { className: "quiet small" });
      const text = part("p", node.text, { dir: "auto" });
      const row = part("div", "", { className: "row" });
      const more = part("button", "Expand", { type: "button" });
      more.addEventListener("click", () => expand(node));
      const middle = new URLSearchParams({ id: node.id });
      row.append(
        part("a", "Open", { href: node.href, className: "button primary" }),
        more,
        part("a", "Centre", { href: `/graph?${middle}`, className: "button" }),
      );
      card.replaceChildren(about, text, row);
    }
    draw();
  };

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - view.x) / view.scale;
    const y = (event.clientY - box.top - view.y) / view.scale;
    let best = null;
    let nearest = (event.pointerType === "touch" ? 26 : 14) / view.scale;
    nodes.forEach((node) => {
      const far = Math.hypot(node.x - x, node.y - y) - radius(node);
      if (far < nearest) { nearest = far; best = node; }
    });
    return { x, y, node: best };
  };

  let dragged = null;
  let panned = null;
  let moved = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const { node } = at(event);
    moved = 0;
    if (node) dragged = node;
    else panned = { x: event.clientX - view.x, y: event.clientY - view.y };
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (dragged) {
      moved += Math.abs(event.movementX) + Math.abs(event.movementY);
      if (moved > 4) { dragged.x = here.x; dragged.y = here.y; placed = true; warm(0.3); }
    } else if (panned) {
      view.x = event.clientX - panned.x;
      view.y = event.clientY - panned.y;
      moved += 1;
      placed = true;
      draw();
    } else if (hovered !== here.node) {
      hovered = here.node;
      canvas.style.cursor = hovered ? "pointer" : "";
      draw();
    }
  });
  const up = (event) => {
    if (dragged && moved <= 4) choose(dragged);
    else if (panned && moved < 2 && event.type === "pointerup") choose(null);
    dragged = null;
    panned = null;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("dblclick", (event) => {
    const { node } = at(event);
    if (node) expand(node);
  });

  const zoom = (by, x, y) => {
    const box = canvas.getBoundingClientRect();
    const [cx, cy] = [x ?? box.width / 2, y ?? box.height / 2];
    const scale = Math.min(6, Math.max(0.1, view.scale * by));
    view = { scale, x: cx - (cx - view.x) * (scale / view.scale), y: cy - (cy - view.y) * (scale / view.scale) };
    placed = true;
    draw();
  };
  // The page scrolls under the wheel unless the graph was entered.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  document.getElementById("graph-zoom").hidden = false;
  document.querySelectorAll("[data-zoom]").forEach((button) => {
    button.addEventListener("click", () => {
      if (button.dataset.zoom === "fit") { fit(); draw(); } else zoom(Number(button.dataset.zoom));
    });
  });

  const walk = (dx, dy) => {
    const from = chosen ?? nodes.get(centre);
    if (!from) return;
    if (!chosen) { choose(from); return; }
    let best = null;
    let least = Infinity;
    nodes.forEach((node) => {
      const x = node.x - from.x;
      const y = node.y - from.y;
      const along = x * dx + y * dy;
      if (node === from || along <= 0) return;
      const cost = along + 2.2 * Math.abs(x * dy - y * dx);
      if (cost < least) { least = cost; best = node; }
    });
    if (best) choose(best);
  };

  canvas.addEventListener("keydown", (event) => {
    const actions = {
      ArrowRight: () => walk(1, 0),
      ArrowLeft: () => walk(-1, 0),
      ArrowDown: () => walk(0, 1),
      ArrowUp: () => walk(0, -1),
      Enter: () => (chosen ? expand(chosen) : walk(1, 0)),
      o: () => { if (chosen) location.href = chosen.href; },
      Escape: () => choose(null),
      "+": () => zoom(1.3),
      "-": () => zoom(0.77),
      0: () => { fit(); draw(); },
    };
    if (Object.hasOwn(actions, event.key) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      event.stopPropagation();
      actions[event.key]();
    }
  });

  // --- filters, themes, sizes ------------------------------------------------------------------------------

  document.getElementById("graph-apply").hidden = true;
  form.addEventListener("change", () => {
    nodes.clear();
    links = [];
    placed = false;
    choose(null);
    history.replaceState(null, "", `/graph?${wanted()}`);
    load(`/graph/data?${wanted()}`, centre);
  });
  document.body.addEventListener("theme", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new ResizeObserver(size).observe(canvas);
  paint();
  size();
  load(frame.dataset.src, centre);
})();
