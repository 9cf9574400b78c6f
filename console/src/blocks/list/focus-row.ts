/**
 * Moves the focus to the first or last row of a table that shows another page. A focus elsewhere stays, and so does a focus on a row.
 * `list`: absent if the user has left the page meanwhile.
 */
export function focusRow(list: HTMLElement | null | undefined, which: "first" | "last"): void {
  if (!list) return;
  const { activeElement: focused } = document;
  const isFree = focused === document.body || (list.contains(focused) && focused?.closest("tbody") === null);
  if (!isFree) return;
  const rows = [...list.querySelectorAll("tbody > tr")];
  (which === "first" ? rows[0] : rows.at(-1))?.querySelector<HTMLElement>("a, button")?.focus();
}
