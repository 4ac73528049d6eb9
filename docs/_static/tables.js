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
