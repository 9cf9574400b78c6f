import { isIPv4 } from "node:net";

/** Parses a URL, or returns a problem. The message contains no part of the text. */
export function readUrl(text: string, base?: URL): URL | string {
  const url = URL.parse(text, base);
  if (!url) return "url is no address";
  if (url.protocol !== "http:" && url.protocol !== "https:") return "url must begin with http:// or https://";
  if (url.username || url.password) return "url must not hold a user or a password: put them into headers";
  // 0x7f.1, 2130706433 and 0177.0.0.1 are also addresses. Honest authors write four numbers.
  if (isIPv4(url.hostname) && !isSpelledOut(text, url.hostname)) return "url must spell its address with four decimal numbers";
  return url;
}

function isSpelledOut(text: string, address: string): boolean {
  const authority = /^\s*(?:https?:)?[\\/]*([^\\/?#]*)/i.exec(text)?.[1] ?? "";
  // A path without a host, which stays at the previous host.
  if (!/^\s*(?:https?:|[\\/]{2})/i.test(text)) return true;
  return authority.trim().replace(/:\d*$/, "") === address;
}
