import temml from "temml";

/** Expansions of macros in one formula, which could otherwise grow without limit. */
const EXPANSIONS = 200;
/** The longest length that a formula may ask for, in `em` and in points. */
const LENGTHS: [number, number] = [20, 200];

/** Draws a formula into the element as MathML, which the browser lays out and screen readers read. Returns whether it is valid TeX. */
export function drawMath(into: HTMLElement, tex: string, isBlock: boolean): boolean {
  try {
    temml.render(tex, into, { displayMode: isBlock, throwOnError: true, trust: false, maxExpand: EXPANSIONS, maxSize: LENGTHS });
  } catch {
    into.replaceChildren();
    return false;
  }
  // `\label` gives ids, which belong to the page alone.
  for (const named of into.querySelectorAll("[id]")) named.removeAttribute("id");
  return true;
}
