/** Allows only what the console's own files need. The console calls only this process, and other pages cannot frame it. */
export function contentSecurityPolicy(urls: readonly string[]): string {
  const origins = [...new Set(urls.map((url) => new URL(url).origin))];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "font-src 'self'",
    // Pictures that are about to be sent are shown from memory.
    "img-src 'self' blob:",
    "media-src 'self' blob:",
    ["connect-src 'self'", ...origins].join(" "),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Markup is made by what was compiled, and by nothing else.
    "require-trusted-types-for 'script'",
    "trusted-types svelte-trusted-html",
  ].join("; ");
}
