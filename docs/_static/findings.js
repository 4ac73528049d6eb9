// A filter for the page of findings: by words, paper, verdict and kind. Without it all findings are shown.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("finding-filter");
  if (!place) return;
  const boxes = [...document.querySelectorAll(".finding")];
  const choices = [["of-", "paper"], ["is-", "verdict"], ["a-", "kind"]];
  const tagged = (box, prefix) => [...box.classList].find((name) => name.startsWith(prefix)) || "";
  const heading = (name) => {
    const section = document.getElementById(name);
    const title = section && section.querySelector("h2");
    return title ? title.firstChild.textContent : null;
  };
  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "Search, for example: envy";
  words.setAttribute("aria-label", "Search in the findings");
  const selects = choices.map(([prefix, label]) => {
    const select = document.createElement("select");
    select.setAttribute("aria-label", label);
    select.add(new Option(`every ${label}`, ""));
    for (const name of [...new Set(boxes.map((box) => tagged(box, prefix)))]) {
      select.add(new Option((prefix === "of-" && heading(name)) || name.slice(prefix.length), name));
    }
    return select;
  });
  const count = document.createElement("output");
  const texts = boxes.map((box) => box.textContent.toLowerCase());
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    boxes.forEach((box, at) => {
      const fits = selects.every((select) => !select.value || box.classList.contains(select.value)) &&
        wanted.every((word) => texts[at].includes(word));
      box.hidden = !fits;
      shown += fits;
    });
    for (const [section] of new Map(boxes.map((box) => [box.closest("section"), box]))) {
      section.hidden = ![...section.querySelectorAll(".finding")].some((box) => !box.hidden);
    }
    count.textContent = `${shown} of ${boxes.length} claims`;
  };
  place.append(words, ...selects, count);
  place.hidden = false;
  place.addEventListener("input", apply);
  const asked = new URLSearchParams(location.search);
  selects.forEach((select, at) => { select.value = choices[at][0] + (asked.get(choices[at][1]) || "") ; if (select.selectedIndex < 0) select.value = ""; });
  words.value = asked.get("words") || "";
  apply();
});
