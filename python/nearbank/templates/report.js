// SPDX-License-Identifier: Apache-2.0
// Sorts a table by the column whose heading is clicked, and opens what a link points at.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th").forEach((heading, column) => {
    heading.addEventListener("click", () => {
      const body = table.tBodies[0];
      const descending = heading.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const keyOf = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const rows = [...body.rows].sort((left, right) => {
        const a = keyOf(left), b = keyOf(right);
        const difference = a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b);
        return descending ? -difference : difference;
      });
      body.append(...rows);
    });
  });
}
function openTarget() {
  let element = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const target = element;
  for (; element; element = element.parentElement) if (element.tagName === "DETAILS") element.open = true;
  if (target) target.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", openTarget);
openTarget();
