// Lines of printed tables scroll together, where the other lines of an output are wrapped.
document.addEventListener("DOMContentLoaded", () => {
  const printed = (text) => /\S {2,}\S|[─━]|^ {8,}\S/.test(text) && !/^[$>]/.test(text);
  for (const pre of document.querySelectorAll(".highlight-console pre, .highlight-text pre, .cell_output pre")) {
    const lines = pre.innerHTML.split("\n").map((html) => ({ html, text: new DOMParser().parseFromString(html, "text/html").body.textContent }));
    if (lines.some(({ html }) => html.split("<span").length !== html.split("</span").length)) continue; // a part goes over several lines
    let made = "", open = false;
    lines.forEach(({ html, text }, at) => {
      const table = printed(text);
      if (table !== open) made += table ? '<span class="table-lines" tabindex="0">' : "</span>";
      open = table;
      made += html + (at < lines.length - 1 ? "\n" : "");
    });
    pre.innerHTML = made + (open ? "</span>" : "");
  }
});

// On a narrow screen, a table that does not fit becomes a list: each row a block, each cell with its column's name.
document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll(".bd-article table")].filter((table) => table.tHead && table.tBodies.length);
  for (const table of tables) {
    const names = [...table.tHead.rows[table.tHead.rows.length - 1].cells].map((cell) => cell.textContent.trim());
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      [...row.cells].forEach((cell, at) => {
        cell.dataset.column = names[at] || "";
        if (!cell.textContent.trim()) cell.dataset.empty = "";
      });
    }
  }
  const narrow = window.matchMedia("(max-width: 600px)");
  const arrange = () => {
    for (const table of tables) {
      table.classList.remove("stacked");
      table.classList.toggle("stacked", narrow.matches && table.scrollWidth > table.parentElement.clientWidth);
    }
  };
  narrow.addEventListener("change", arrange);
  arrange();
});
