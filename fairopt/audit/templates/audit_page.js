"use strict";
const find = document.getElementById("find"), stands = document.getElementById("stands"), told = document.getElementById("told");
const rows = Array.from(document.querySelectorAll("#users tbody tr"));
function filter() {
  const text = find.value.toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits = row.dataset.names.toLowerCase().includes(text) && (!stands.value || row.dataset.stands === stands.value);
    row.hidden = !fits;
    shown += fits;
  }
  told.textContent = shown + " of " + rows.length + " lines";
}
find.addEventListener("input", filter);
stands.addEventListener("change", filter);
document.getElementById("filter").hidden = false;
filter();
