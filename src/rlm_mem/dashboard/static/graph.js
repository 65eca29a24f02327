// The graph of linked memories: communities as discs on a canvas, walked with the mouse, fingers or keys.
(() => {
  "use strict";
  const frame = document.getElementById("graph");
  if (!frame) return;
  frame.hidden = false;
  const find = (id) => document.getElementById(id);
  const canvas = frame.querySelector("canvas");
  const [card, counted, form, words] = ["graph-card", "graph-count", "graph-form", "graph-words"].map(find);
  const pen = canvas.getContext("2d");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const most = Number(frame.dataset.most);
  const centre = frame.dataset.centre;
  const expanded = [];
  const SPACE = 26; // between two memories of a community, in units of the picture

  let nodes = [];
  let links = [];
  let groups = [];
  let bridges = [];
  let cut = false;
  let chosen = null;
  let hovered = null;
  let alone = null; // the community that is looked at
  let types = new Set();
  let span = null; // first and last day
  let view = { x: 0, y: 0, scale: 1 };
  let touched = false;
  let colours = {};

  // --- data ------------------------------------------------------------------------------------------------

  const wanted = () => new URLSearchParams(new FormData(form));

  const load = async () => {
    const asked = wanted();
    expanded.forEach((id) => asked.append("expand", id));
    try {
      const answer = await fetch(`/graph/data?${asked}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      take(await answer.json());
    } catch {
      counted.textContent = "The graph cannot be loaded now; the lists below still work.";
    }
  };

  const take = (data) => {
    const before = new Map(nodes.map((node) => [node.id, node]));
    nodes = data.nodes.map((given) => ({ ...given, x: 0, y: 0, degree: 0, near: new Set() }));
    const known = new Map(nodes.map((node) => [node.id, node]));
    links = data.links.map((link) => ({ ...link, source: known.get(link.source), target: known.get(link.target) }));
    links.forEach(({ source, target }) => {
      source.degree += 1;
      target.degree += 1;
      source.near.add(target);
      target.near.add(source);
    });
    groups = data.groups.map((given, number) => ({ ...given, number, members: [], x: 0, y: 0 }));
    nodes.forEach((node) => groups[node.group].members.push(node));
    cut = data.cut;
    chosen = chosen && (known.get(chosen.id) ?? null);
    alone = null;
    hovered = null;
    place();
    if (before.size && !still.matches) move(before);
    else {
      if (!touched) fit(groups);
      tell();
    }
    if (chosen) choose(chosen);
  };

  const expand = (node) => {
    if (expanded.includes(node.id)) return;
    expanded.push(node.id);
    load();
  };

  // --- layout: communities apart from each other, and a disc for each of them --------------------------------

  const place = () => {
    groups.forEach((group) => {
      group.members.sort((a, b) => b.degree - a.degree || (a.id < b.id ? -1 : 1));
      group.radius = SPACE * (0.62 * Math.sqrt(group.members.length) + 0.3);
      // A spiral of sunflower seeds: the same graph always begins the same way.
      group.members.forEach((node, number) => {
        const [angle, far] = [number * 2.399963, SPACE * 0.56 * Math.sqrt(number)];
        [node.x, node.y] = [far * Math.cos(angle), far * Math.sin(angle)];
      });
      for (let round = 0; round < 60; round += 1) relax(group);
      const middle = ["x", "y"].map((axis) => group.members.reduce((sum, node) => sum + node[axis], 0) / group.members.length);
      group.members.forEach((node) => { node.x -= middle[0]; node.y -= middle[1]; });
      group.radius = Math.max(...group.members.map((node) => Math.hypot(node.x, node.y))) + SPACE * 0.35;
    });
    const pairs = new Map();
    links.forEach(({ source, target }) => {
      if (source.group === target.group) return;
      const [a, b] = [Math.min(source.group, target.group), Math.max(source.group, target.group)];
      const key = `${a} ${b}`;
      if (!pairs.has(key)) pairs.set(key, { a: groups[a], b: groups[b], number: 0 });
      pairs.get(key).number += 1;
    });
    bridges = [...pairs.values()];
    const box = canvas.getBoundingClientRect();
    const wide = Math.sqrt(Math.max(0.6, Math.min(2.2, box.width / (box.height || 1))));
    let area = 0;
    groups.forEach((group, number) => {
      const far = Math.sqrt(area);
      [group.x, group.y] = [far * Math.cos(number * 2.399963) * wide, (far * Math.sin(number * 2.399963)) / wide];
      area += (group.radius + 16) ** 2 * 1.3;
    });
    for (let round = 0; round < 400; round += 1) settle(1 - round / 400, wide);
    groups.forEach((group) => group.members.forEach((node) => { node.x += group.x; node.y += group.y; }));
  };

  const relax = ({ members, radius }) => {
    for (let i = 0; i < members.length; i += 1) {
      const a = members[i];
      a.near.forEach((b) => {
        if (b.group !== a.group) return;
        const [dx, dy] = [b.x - a.x, b.y - a.y];
        const far = Math.hypot(dx, dy) || 1;
        const pull = (0.02 * (far - SPACE * 1.2)) / far;
        a.x += dx * pull; a.y += dy * pull;
        b.x -= dx * pull; b.y -= dy * pull;
      });
      for (let j = 0; j < i; j += 1) {
        const b = members[j];
        const [dx, dy] = [b.x - a.x || 0.1, b.y - a.y || 0.1];
        const far = Math.hypot(dx, dy);
        if (far >= SPACE) continue;
        const push = (0.5 * (SPACE - far)) / far;
        a.x -= dx * push; a.y -= dy * push;
        b.x += dx * push; b.y += dy * push;
      }
      const out = Math.hypot(a.x, a.y);
      if (out > radius) { a.x *= radius / out; a.y *= radius / out; }
    }
  };

  const settle = (heat, wide) => {
    bridges.forEach(({ a, b, number }) => {
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const far = Math.hypot(dx, dy) || 1;
      const pull = (heat * 0.04 * Math.min(1, Math.log2(1 + number) / 4) * (far - a.radius - b.radius)) / far;
      a.x += dx * pull; a.y += dy * pull;
      b.x -= dx * pull; b.y -= dy * pull;
    });
    groups.forEach((a, i) => {
      a.x -= (a.x * 0.03 * heat) / wide ** 3;
      a.y -= a.y * 0.03 * heat * wide ** 3;
      for (let j = 0; j < i; j += 1) {
        const b = groups[j];
        const [dx, dy] = [b.x - a.x || 0.1, b.y - a.y || 0.1];
        const far = Math.hypot(dx, dy);
        const least = a.radius + b.radius + 30;
        if (far >= least) continue;
        const push = (0.5 * (least - far)) / far;
        a.x -= dx * push; a.y -= dy * push;
        b.x += dx * push; b.y += dy * push;
      }
    });
  };

  // From where memories stood to where they belong now.
  const move = (before) => {
    const ways = nodes.map((node) => {
      const from = before.get(node.id) ?? chosen ?? node;
      return { node, x: from.x, y: from.y, dx: node.x - from.x, dy: node.y - from.y };
    });
    const began = performance.now();
    const step = (now) => {
      const part = Math.min(1, Math.max(0, (now - began) / 350));
      const eased = 1 - (1 - part) ** 3;
      ways.forEach(({ node, x, y, dx, dy }) => { node.x = x + dx * eased; node.y = y + dy * eased; });
      if (part < 1) { draw(); requestAnimationFrame(step); } else { if (!touched) fit(groups); tell(); }
    };
    requestAnimationFrame(step);
  };

  // --- what is looked at -------------------------------------------------------------------------------------

  const sought = () => (words?.value ?? "").trim().toLowerCase();
  const seen = (node) => (alone === null || node.group === alone) && (!types.size || types.has(node.type))
    && (!span || (node.day >= span[0] && node.day <= span[1])) && (!sought() || node.text.toLowerCase().includes(sought()));

  const some = ({ length }, one, many) => `${length.toLocaleString("en")} ${length === 1 ? one : many}`;

  const tell = () => {
    nodes.forEach((node) => { node.lit = seen(node); });
    const lit = nodes.filter((node) => node.lit).length;
    const within = lit === nodes.length ? "" : `${lit.toLocaleString("en")} of `;
    const more = cut ? (nodes.length >= most ? "; there are more" : "; there are more: expand what interests you") : "";
    counted.textContent = `${within}${some(nodes, "memory", "memories")}, ${some(links, "link", "links")}, ${some(groups.filter((group) => group.linked), "community", "communities")}${more}.`;
    bars();
    draw();
  };

  const fit = (within) => {
    if (!within.length) return;
    const box = canvas.getBoundingClientRect();
    const edges = within.map(({ x, y, radius }) => [x - radius - SPACE, x + radius + SPACE, y - radius - SPACE * 1.7, y + radius + SPACE]);
    const [left, top] = [0, 2].map((side) => Math.min(...edges.map((edge) => edge[side])));
    const [right, bottom] = [1, 3].map((side) => Math.max(...edges.map((edge) => edge[side])));
    const scale = Math.min(2.6, box.width / (right - left), box.height / (bottom - top));
    view = { scale, x: box.width / 2 - ((left + right) / 2) * scale, y: box.height / 2 - ((top + bottom) / 2) * scale };
  };

  const look = (number) => {
    alone = number;
    touched = number !== null;
    fit(number === null ? groups : [groups[number]]);
    tell();
  };

  // --- drawing ---------------------------------------------------------------------------------------------

  const paint = () => {
    // A colour of the theme in use: the property itself names those of both themes.
    const style = getComputedStyle(canvas);
    const of = (name) => { canvas.style.color = `var(--${name})`; return style.color; };
    colours = Object.fromEntries(["sheet", "sunk", "ink", "soft", "accent", "fact", "preference", "pattern", "decision", "note", "mark"].map((name) => [name, of(name)]));
    colours.sans = style.getPropertyValue("--sans");
    Object.assign(colours, { line: of("line-strong"), hull: of("line"), supports: of("good"), contradicts: of("bad") });
    bars();
    draw();
  };

  const size = () => {
    const ratio = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    if (!touched) fit(groups);
    bars();
    draw();
  };

  // Closer, memories stand further apart, but do not grow as much.
  const radius = (node) => (node.id === centre ? 9 : 4.5 + Math.min(4, Math.sqrt(node.degree) * 0.8)) / Math.sqrt(Math.max(1, view.scale));

  const draw = () => {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.translate(view.x, view.y);
    pen.scale(view.scale, view.scale);
    groups.forEach((group) => {
      pen.globalAlpha = group.members.some((node) => node.lit) ? 1 : 0.35;
      pen.beginPath();
      pen.arc(group.x, group.y, group.radius + SPACE * 0.5, 0, 7);
      pen.fillStyle = colours.sunk;
      pen.fill();
      pen.lineWidth = 1 / view.scale;
      pen.strokeStyle = colours.hull;
      if (!group.linked) pen.setLineDash([4 / view.scale, 4 / view.scale]);
      pen.stroke();
      pen.setLineDash([]);
    });
    pen.strokeStyle = colours.line;
    bridges.forEach(({ a, b, number }) => {
      if (view.scale > 1.5) return; // closer, each link is drawn
      pen.globalAlpha = chosen ? 0.1 : 0.28;
      pen.lineWidth = Math.min(5, 0.8 + Math.log2(number)) / Math.sqrt(view.scale);
      const far = Math.hypot(b.x - a.x, b.y - a.y) || 1;
      const [dx, dy] = [(b.x - a.x) / far, (b.y - a.y) / far];
      line(
        { x: a.x + dx * (a.radius + SPACE * 0.5), y: a.y + dy * (a.radius + SPACE * 0.5) },
        { x: b.x - dx * (b.radius + SPACE * 0.5), y: b.y - dy * (b.radius + SPACE * 0.5) },
      );
    });
    links.forEach(({ source, target, type, strength }) => {
      const lit = chosen && (source === chosen || target === chosen);
      if (!lit && source.group !== target.group && view.scale <= 1.5) return;
      pen.strokeStyle = colours[type] ?? colours.line;
      pen.globalAlpha = lit ? 0.95 : (chosen || !source.lit || !target.lit ? 0.1 : 0.2 + 0.3 * strength);
      pen.lineWidth = (lit ? 1.8 : 1) / Math.sqrt(view.scale);
      line(source, target);
    });
    nodes.forEach((node) => {
      const near = !chosen || node === chosen || chosen.near.has(node);
      pen.globalAlpha = node.lit && near ? 1 : 0.18;
      pen.fillStyle = colours[node.type] ?? colours.note;
      ring(node, 0);
      pen.fill();
      pen.lineWidth = node === chosen ? 3 : 1.2;
      pen.strokeStyle = node === chosen ? colours.ink : colours.sheet;
      pen.stroke();
      if (node.id === centre && node !== chosen) {
        pen.strokeStyle = colours.accent;
        pen.lineWidth = 2;
        ring(node, 3.5);
        pen.stroke();
      }
    });
    pen.globalAlpha = 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    label(canvas.width / ratio, canvas.height / ratio);
  };

  const line = (from, to) => {
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
  };

  const ring = (node, more) => {
    pen.beginPath();
    pen.arc(node.x, node.y, radius(node) + more, 0, 7);
  };

  // Labels stand within the picture and never on one another; the first ones have their place.
  const label = (width, height) => {
    const taken = [];
    pen.textAlign = "center";
    pen.lineJoin = "round";
    const put = (text, x, y, { bold = false, always = false, room = 200, bare = false, colour = colours.ink } = {}) => {
      pen.font = `${bold ? "600 12" : "11.5"}px ${colours.sans}`;
      let said = text;
      while (said.length > 2 && pen.measureText(said).width > Math.min(room, width - 12)) said = `${said.slice(0, -2).trimEnd()}…`;
      const half = pen.measureText(said).width / 2;
      const middle = Math.min(Math.max(x, half + 6), width - half - 6);
      if (!always && (x < 0 || x > width || y < 6 || y > height + 6)) return;
      const line = Math.min(Math.max(y, 14), height - 5);
      const box = [middle - half - 3, line - 12, middle + half + 3, line + 4];
      if (!always && taken.some((one) => box[0] < one[2] && one[0] < box[2] && box[1] < one[3] && one[1] < box[3])) return;
      if (bare && covered(box) > 0) return;
      taken.push(box);
      pen.lineWidth = 4;
      pen.strokeStyle = colours.sheet;
      pen.strokeText(said, middle, line);
      pen.fillStyle = colour;
      pen.fillText(said, middle, line);
    };
    const on = (node) => [node.x * view.scale + view.x, (node.y + radius(node)) * view.scale + view.y + 13];
    const covered = (box) => nodes.filter((node) => {
      const [x, y] = [node.x * view.scale + view.x, node.y * view.scale + view.y];
      return x > box[0] - 3 && x < box[2] + 3 && y > box[1] - 3 && y < box[3] + 3;
    }).length;
    [chosen, hovered].forEach((node) => { if (node) put(node.text, ...on(node), { always: true, room: 320 }); });
    const own = nodes.find((node) => node.id === centre);
    if (own) put(own.text, ...on(own), { bold: true, room: 240 });
    groups.forEach((group) => {
      if (group.members.length < 2 && !group.linked) return;
      if (!group.members.some((node) => node.lit)) return;
      const top = (group.y - group.radius - SPACE * 0.5) * view.scale + view.y - 5;
      const room = Math.max(130, 2.4 * group.radius * view.scale);
      if (group.members.length > 2 || view.scale > 0.9) put(group.name, group.x * view.scale + view.x, top, { bold: true, room });
    });
    const search = sought();
    nodes.filter((node) => node.lit && (view.scale > 1.3 || search || chosen?.near.has(node)))
      .sort((a, b) => (chosen ? Number(chosen.near.has(b)) - Number(chosen.near.has(a)) : 0) || b.degree - a.degree)
      .slice(0, 250)
      .forEach((node) => put(node.text, ...on(node), { room: search ? 180 : 60 + 70 * view.scale, bare: !search, colour: search ? colours.ink : colours.soft }));
  };

  // How many memories there are of each time; what is chosen stands out.
  const bars = () => {
    const place = find("graph-bars");
    if (!place || !nodes.length) return;
    const ratio = window.devicePixelRatio || 1;
    const box = place.getBoundingClientRect();
    [place.width, place.height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    const draw = place.getContext("2d");
    const days = find("graph-span").dataset.days.split(" ");
    const number = Math.min(60, days.length);
    const counts = Array.from({ length: number }, () => [0, 0]);
    nodes.forEach((node) => {
      const at = days.findIndex((day) => day >= node.day);
      const bar = counts[Math.min(number - 1, Math.floor(((at < 0 ? days.length - 1 : at) * number) / days.length))];
      bar[0] += 1;
      if (node.lit) bar[1] += 1;
    });
    const top = Math.max(...counts.map((bar) => bar[0]), 1);
    const step = place.width / number;
    counts.forEach((bar, at) => bar.forEach((many, which) => {
      const tall = (many / top) * place.height;
      draw.fillStyle = which ? colours.accent : colours.hull;
      draw.fillRect(at * step + step * 0.1, place.height - tall, step * 0.8, tall);
    }));
  };

  // --- choosing --------------------------------------------------------------------------------------------

  const part = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

  const choose = (node) => {
    chosen = node;
    card.hidden = !node;
    if (node) {
      const group = groups[node.group];
      const about = part("p", `${node.type} · ${node.day}`, { className: "quiet small" });
      const text = part("p", node.text, { dir: "auto" });
      const where = part("p", `${node.near.size ? `linked with ${node.near.size}` : "not linked"}${group.linked ? ` · ${group.name}` : ""}`, { className: "quiet small", dir: "auto" });
      const row = part("div", "", { className: "row" });
      const more = part("button", "Expand", { type: "button", disabled: expanded.includes(node.id) });
      more.addEventListener("click", () => expand(node));
      row.append(
        part("a", "Open", { href: node.href, className: "button primary" }),
        more,
        part("a", "Centre", { href: `/graph?${new URLSearchParams({ id: node.id })}`, className: "button" }),
      );
      card.replaceChildren(about, text, where, row);
      const [x, y] = [node.x * view.scale + view.x, node.y * view.scale + view.y];
      const box = canvas.getBoundingClientRect();
      if (x < 20 || y < 20 || x > box.width - 20 || y > box.height - 20) {
        view = { ...view, x: box.width / 2 - node.x * view.scale, y: box.height / 2 - node.y * view.scale };
        touched = true;
      }
    }
    draw();
  };

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - view.x) / view.scale;
    const y = (event.clientY - box.top - view.y) / view.scale;
    let best = null;
    let nearest = (event.pointerType === "touch" ? 22 : 10) / view.scale;
    nodes.forEach((node) => {
      const far = Math.hypot(node.x - x, node.y - y) - radius(node);
      if (node.lit && far < nearest) { nearest = far; best = node; }
    });
    const group = groups.find((one) => Math.hypot(one.x - x, one.y - y) < one.radius + SPACE * 0.5) ?? null;
    return { node: best, group };
  };

  const fingers = new Map();
  let pressed = null;
  let moved = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    pressed = at(event);
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      const { node } = at(event);
      if (node !== hovered) {
        hovered = node;
        canvas.style.cursor = hovered ? "pointer" : "";
        draw();
      }
      return;
    }
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    moved += Math.abs(dx) + Math.abs(dy);
    const other = [...fingers.values()].find((one) => one.pointerId !== event.pointerId);
    fingers.set(event.pointerId, event);
    if (other) {
      const box = canvas.getBoundingClientRect();
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      zoom(apart(event) / apart(before), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
    }
    if (moved > 4) {
      view = { ...view, x: view.x + dx / fingers.size, y: view.y + dy / fingers.size };
      touched = true;
      draw();
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    if (moved > 4 || !pressed) return;
    if (pressed.node) choose(pressed.node);
    else if (chosen) choose(null);
    else if (pressed.group && alone === null) look(pressed.group.number);
    else if (alone !== null) look(null);
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("dblclick", (event) => {
    const { node } = at(event);
    if (node) expand(node);
  });

  const zoom = (by, x, y) => {
    const box = canvas.getBoundingClientRect();
    const [cx, cy] = [x ?? box.width / 2, y ?? box.height / 2];
    const scale = Math.min(6, Math.max(0.1, view.scale * by));
    view = { scale, x: cx - (cx - view.x) * (scale / view.scale), y: cy - (cy - view.y) * (scale / view.scale) };
    touched = true;
    draw();
  };
  // The page scrolls under the wheel unless the graph was entered.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  document.querySelectorAll("[data-zoom]").forEach((button) => {
    button.addEventListener("click", () => {
      if (button.dataset.zoom === "fit") look(null); else zoom(Number(button.dataset.zoom));
    });
  });

  const walk = (dx, dy) => {
    if (!chosen) { choose(nodes.find((node) => node.id === centre) ?? nodes.find((node) => node.lit) ?? null); return; }
    let best = null;
    let least = Infinity;
    nodes.forEach((node) => {
      const [x, y] = [node.x - chosen.x, node.y - chosen.y];
      const along = x * dx + y * dy;
      if (node === chosen || !node.lit || along <= 0) return;
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
      Escape: () => (chosen ? choose(null) : look(null)),
      "+": () => zoom(1.3),
      "-": () => zoom(0.77),
      0: () => look(null),
    };
    if (Object.hasOwn(actions, event.key) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      event.stopPropagation();
      actions[event.key]();
    }
  });

  // --- types, time, words, kinds of links ----------------------------------------------------------------------

  find("graph-apply").hidden = true;
  find("graph-find").hidden = false;
  document.querySelectorAll("[data-focus]").forEach((button) => button.addEventListener("click", () => {
    const name = button.dataset.focus;
    if (!types.delete(name)) types.add(name);
    button.setAttribute("aria-pressed", String(types.has(name)));
    tell();
  }));
  document.querySelectorAll("[data-group]").forEach((button) => {
    button.hidden = false;
    button.nextElementSibling.hidden = true;
    button.addEventListener("click", () => {
      const group = groups[Number(button.dataset.group)];
      if (!group) return;
      choose(null);
      look(group.number);
      canvas.scrollIntoView({ block: "nearest" });
      canvas.focus({ preventScroll: true });
    });
  });
  const [from, to] = ["graph-from", "graph-to"].map(find);
  const days = find("graph-span")?.dataset.days.split(" ") ?? [];
  [from, to].forEach((slider) => slider?.addEventListener("input", () => {
    if (Number(from.value) > Number(to.value)) (slider === from ? to : from).value = slider.value;
    span = [days[from.value], days[to.value]];
    if (span[0] === days[0] && span[1] === days.at(-1)) span = null;
    find("graph-when").textContent = `${days[from.value]} to ${days[to.value]}`;
    tell();
  }));
  words?.addEventListener("input", tell);
  // Enter goes from one memory that is found to the next.
  words?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !sought()) return;
    event.preventDefault();
    const found = nodes.filter((node) => node.lit);
    if (found.length) choose(found[(found.indexOf(chosen) + 1) % found.length]);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    if (!event.target.name) return;
    touched = false;
    choose(null);
    history.replaceState(null, "", `/graph?${wanted()}`);
    load();
  });
  document.body.addEventListener("theme", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new ResizeObserver(size).observe(canvas);
  paint();
  size();
  load();
})();
