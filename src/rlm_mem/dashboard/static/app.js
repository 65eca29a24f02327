// What pages do beyond links and forms: follow changes, keys, theme, sliders. No page needs it to be read.
(() => {
  "use strict";
  const body = document.body;
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // --- what others write shows at once -------------------------------------------------------------------
  // One stream of topics a page. The parts that care listen for `live-TOPIC` on the body and load themselves anew.

  const topics = (body.dataset.live || "").split(" ").filter(Boolean);
  const light = find("#live");
  const due = new Map();
  let stream = null;
  // What is unfinished may have ended between the making of the page and the opening of the stream.
  let missed = find("[data-unfinished]") !== null;
  let hush = 0;

  const tell = (topic) => {
    if (!topics.includes(topic) || due.has(topic)) return;
    // Many small writes in a row are one change.
    due.set(topic, setTimeout(() => {
      due.delete(topic);
      body.dispatchEvent(new CustomEvent(`live-${topic}`));
    }, 80));
  };

  const show = (text, away) => {
    if (!light) return;
    light.hidden = false;
    light.classList.toggle("away", away);
    if (light.textContent !== text) light.textContent = text;
  };

  const follow = () => {
    if (stream || !topics.length || document.hidden || !window.EventSource) return;
    stream = new EventSource("/live");
    stream.addEventListener("open", () => {
      show("Live", false);
      if (missed) topics.forEach(tell);
      missed = false;
    });
    stream.addEventListener("changed", (event) => {
      event.data.split(" ").forEach(tell);
      light?.classList.remove("told");
      requestAnimationFrame(() => light?.classList.add("told"));
    });
    stream.addEventListener("error", () => {
      missed = true;
      show("Reconnecting…", true);
    });
  };

  const leave = () => {
    if (!stream) return;
    stream.close();
    stream = null;
    missed = true;
  };

  // A page in the background holds no connection: browsers allow only a few to one server.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hush);
    if (document.hidden) hush = setTimeout(leave, 3000);
    else follow();
  });
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", follow);
  follow();

  // --- keys ------------------------------------------------------------------------------------------------

  // Whatever takes letters itself, a select or a slider included: no key of the page is taken from it.
  const typing = (element) => element.isContentEditable || element.closest("input, textarea, select") !== null;
  const items = () => all("[data-list] :is(a.what, a[data-item])");
  let prefix = -Infinity;

  const step = (by) => {
    const links = items();
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    const to = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
    links[to].focus();
    links[to].scrollIntoView({ block: "nearest" });
  };

  // Esc in a search empties it, and the list without it comes back; in any other field, and again, it leaves.
  const escape = (field) => {
    if (field.matches("[data-find][type=search]") && field.value) {
      field.value = "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    } else {
      field.blur();
    }
  };

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || !(event.target instanceof Element)) return;
    if (event.key === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && find("#palette")) {
      event.preventDefault();
      if (!find("dialog[open]")) openPalette();
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      const form = typing(event.target) && event.target.closest("form");
      if (form) {
        event.preventDefault();
        form.requestSubmit(find("button.primary", form) ?? undefined);
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("dialog") || find("dialog[open]")) return;
    if (typing(event.target)) {
      prefix = -Infinity;
      if (event.key === "Escape") {
        event.preventDefault();
        escape(event.target);
      } else if (event.key === "ArrowDown" && event.target.matches("[data-find]") && items().length) {
        event.preventDefault();
        step(1);
      }
      return;
    }
    if (performance.now() - prefix < 1200) {
      prefix = -Infinity;
      const link = find(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
      }
      return;
    }
    const search = find("[data-find]");
    const actions = {
      "/": () => (search ? (search.focus(), search.select()) : (location.href = "/memories#q")),
      "j": () => step(1),
      "k": () => step(-1),
      "g": () => { prefix = performance.now(); },
      "n": () => { if (body.dataset.new) location.href = body.dataset.new; },
      "?": () => find("#keys").showModal(),
    };
    const marked = find(`[data-hotkey="${CSS.escape(event.key)}"]`);
    if (Object.hasOwn(actions, event.key)) {
      event.preventDefault();
      actions[event.key]();
    } else if (marked) {
      event.preventDefault();
      marked.click();
    }
  });

  // --- the palette: pages, actions and memories by name -------------------------------------------------------

  const palette = find("#palette");
  const sought = find("#palette-words");
  const offered = find("#palette-list");
  let options = [];
  let at = 0;
  let asked = null;

  const made = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

  const openPalette = () => {
    sought.value = "";
    offer();
    palette.showModal();
    sought.focus();
  };

  const choose = (number) => {
    at = Math.max(0, Math.min(options.length - 1, number));
    [...offered.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
    if (options.length) sought.setAttribute("aria-activedescendant", `palette-${at}`);
    else sought.removeAttribute("aria-activedescendant");
    offered.children[at]?.scrollIntoView({ block: "nearest" });
  };

  const list = (entries) => {
    options = entries;
    offered.replaceChildren(...entries.map(({ text, hint, run }, number) => {
      const item = made("li", "", { id: `palette-${number}`, role: "option", dir: "auto" });
      item.append(made("span", text), made("span", hint, { className: "quiet small" }));
      item.addEventListener("click", () => { palette.close(); run(); });
      return item;
    }));
    choose(0);
  };

  const go = (to) => () => { location.href = to; };

  const offer = async () => {
    const text = sought.value.trim();
    const low = text.toLowerCase();
    const pages = all("nav a[data-key]").map((link) => ({ text: link.textContent, hint: `g ${link.dataset.key}`, run: () => link.click() }));
    const themes = all("[data-theme-form] button").map((button) => ({ text: `Theme: ${button.textContent}`, hint: "", run: () => button.click() }));
    const others = [
      ...(body.dataset.new ? [{ text: "Remember something", hint: "n", run: go(body.dataset.new) }] : []),
      { text: "Keys", hint: "?", run: () => find("#keys").showModal() },
      ...themes,
    ];
    const named = [...pages, ...others].filter((one) => one.text.toLowerCase().includes(low));
    const search = text ? [{ text: `Search memories for “${text}”`, hint: "", run: go(`/memories?${new URLSearchParams({ q: text })}`) }] : [];
    list([...named, ...search]);
    asked?.abort();
    if (text.length < 3) return;
    asked = new AbortController();
    try {
      const to = `/memories?${new URLSearchParams({ q: text, limit: 6 })}`;
      const answer = await fetch(to, { headers: { "HX-Request": "true" }, signal: asked.signal });
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll("#results a.what");
      if (sought.value.trim() !== text) return;
      const kept = at;
      list([...named, ...[...found].map((link) => ({ text: link.textContent.trim(), hint: "memory", run: go(link.getAttribute("href")) })), ...search]);
      choose(kept < named.length ? kept : named.length);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };

  sought?.addEventListener("input", offer);
  sought?.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      choose(at + by);
    } else if (event.key === "Enter") {
      event.preventDefault();
      offered.children[at]?.click();
    }
  });

  all("[data-open]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => find(`#${button.dataset.open}`).showModal());
  });
  if (location.hash === "#q") find("[data-find]")?.focus();
  // After a change, the keyboard goes on at what was done, which is then also read out, instead of at the top of the page.
  else if (document.activeElement === body) find("main > .notice")?.focus();

  // The way back leads to the list as it was searched, also after the memory was edited.
  const back = find("[data-back]");
  const kept = document.referrer.startsWith(`${location.origin}/memories/`) && sessionStorage.getItem("list");
  if (back && kept) [back.href, back.textContent] = JSON.parse(kept);
  else if (back) sessionStorage.setItem("list", JSON.stringify([back.href, back.textContent]));

  // An answer belongs to the question as it was asked.
  find("#search")?.addEventListener("input", () => find("#answer").replaceChildren());

  // --- files to import -------------------------------------------------------------------------------------

  find("[data-upload]")?.addEventListener("submit", (event) => {
    const form = event.currentTarget;
    const files = all("input[type=file]", form).flatMap((input) => [...input.files]);
    const most = Number(form.dataset.upload);
    let problem = "";
    if (!files.length) problem = "No file is chosen.";
    else if (files.length > Number(form.dataset.files)) problem = `${files.length} files are too many: pack them into a zip file.`;
    else if (files.reduce((sum, file) => sum + file.size, 0) > most) problem = `The files have more than ${most / 1048576} MiB together: send them in parts.`;
    const told = find("[role=alert]", form);
    told.hidden = !problem;
    told.textContent = problem;
    if (problem) {
      event.preventDefault();
      return;
    }
    // The form itself does not tell when a file was changed.
    all("input[name=modified]", form).forEach((field) => field.remove());
    files.forEach((file) => {
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: "modified", value: file.lastModified });
      form.append(field);
    });
  });

  // --- theme -----------------------------------------------------------------------------------------------

  find("[data-theme-form]")?.addEventListener("submit", (event) => {
    const chosen = event.submitter?.value;
    if (!chosen) return;
    event.preventDefault();
    const root = document.documentElement;
    if (chosen === "auto") delete root.dataset.theme;
    else root.dataset.theme = chosen;
    document.cookie = `rlm_mem_theme=${chosen}; path=/; max-age=31536000; samesite=strict`;
    all("button", event.currentTarget).forEach((button) => {
      button.setAttribute("aria-pressed", String(button.value === chosen));
    });
    body.dispatchEvent(new CustomEvent("theme"));
  });

  // --- forms -----------------------------------------------------------------------------------------------

  const value = (event) => {
    const slider = event.target.closest?.('input[type="range"]');
    const shown = slider && find(`output[for="${CSS.escape(slider.id)}"]`);
    if (shown) shown.textContent = slider.value;
  };
  document.addEventListener("input", value);
  document.addEventListener("shown", value);

  // What somebody else set shows on the sliders too, but never moves the one under a finger.
  document.addEventListener("htmx:after:swap", () => {
    const prompt = find("#prompt[data-values]");
    if (!prompt) return;
    const fresh = find(".new", prompt);
    const text = find(".prompt", prompt);
    if (fresh) text.scrollTop = fresh.offsetTop - text.offsetTop - text.clientHeight / 3;
    Object.entries(JSON.parse(prompt.dataset.values)).forEach(([name, value]) => {
      const slider = document.getElementById(`slider-${name}`);
      if (!slider || slider.value === String(value) || slider.matches(":active, :focus")) return;
      slider.value = value;
      slider.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
    });
    const mode = document.getElementById("mode");
    if (mode && !mode.matches(":focus")) mode.value = prompt.dataset.mode;
  });

  // Choosing a value is enough; the button is there for pages without scripts.
  all("form[data-auto]").forEach((form) => {
    all("[data-auto-hide]", form).forEach((button) => { button.hidden = true; });
    form.addEventListener("change", () => form.requestSubmit());
  });

  const countTicked = () => all("[data-ticked]").forEach((shown) => {
    const count = all(`input[form="${shown.form.getAttribute("id")}"]:checked`).length; // `id` is the box of that name
    shown.value = count ? `${count} ticked` : "";
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) {
      const form = event.target.form.getAttribute("id");
      all(`input[form="${form}"]`).forEach((box) => { box.checked = event.target.checked; });
    }
    countTicked();
  });
  document.addEventListener("htmx:after:swap", countTicked);

  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.sure ?? event.target.dataset.sure;
    if (question && !window.confirm(question)) event.preventDefault();
  });
})();
