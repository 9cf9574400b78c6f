/**
 * Moves the focus after navigation: to the heading of the place, or to the control that it marks with `data-arrival`. Where the focus
 * opens a keyboard on the screen, always to the heading.
 */
export function focusPlace(): void {
  const hasScreenKeyboard = matchMedia("(pointer: coarse)").matches;
  const marked = hasScreenKeyboard ? null : document.querySelector<HTMLElement>("[data-arrival]");
  (marked ?? document.querySelector<HTMLElement>("#page-title"))?.focus();
}

/** Moves the focus to a marked control that was rendered after the arrival, if the user has not moved it meanwhile. */
export function focusLate(): void {
  const { activeElement } = document;
  if (activeElement === null || activeElement === document.body || activeElement.id === "page-title") focusPlace();
}
