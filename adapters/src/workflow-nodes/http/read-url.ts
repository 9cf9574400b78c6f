import { isIPv4 } from "node:net";

/** The address that a text names, or what is wrong with it, in words that repeat nothing of it. */
export function readUrl(text: string, base?: URL): URL | string {
  const url = URL.parse(text, base);
  if (!url) return "url is no address";
  if (url.protocol !== "http:" && url.protocol !== "https:") return "url must begin with http:// or https://";
  if (url.username || url.password) return "url must not hold a user or a password: put them into headers";
  // 0x7f.1, 2130706433 and 0177.0.0.1 are addresses, too; honest authors write them with four numbers.
  if (isIPv4(url.hostname) && !isSpelledOut(text, url.hostname)) return "url must spell its address with four decimal numbers";
  return url;
}

function isSpelledOut(text: string, address: string): boolean {
  const authority = /^\s*(?:https?:)?[\\/]*([^\\/?#]*)/i.exec(text)?.[1] ?? "";
  // A path alone, which stays at the address before it.
  if (!/^\s*(?:https?:|[\\/]{2})/i.test(text)) return true;
  return authority.trim().replace(/:\d*$/, "") === address;
}
