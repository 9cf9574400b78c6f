import type { Secret } from "@portico/core";

/** Whether two connection URLs lead to the same place, whatever their users and passwords. */
export function isSamePlace(one: string | Secret, other: string | Secret): boolean {
  const [text, next] = [revealed(one), revealed(other)];
  return text === next || (URL.canParse(text) && URL.canParse(next) && placeOf(text) === placeOf(next));
}

function revealed(url: string | Secret): string {
  return typeof url === "string" ? url : url.reveal();
}

function placeOf(text: string): string {
  const url = new URL(text);
  url.username = "";
  url.password = "";
  return url.href;
}
