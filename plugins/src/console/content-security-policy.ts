/** Allows only what the console's own files need. The console calls only this process, and other pages cannot frame it. */
export function contentSecurityPolicy(urls: readonly string[]): string {
  const origins = [...new Set(urls.map((url) => new URL(url).origin))];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "font-src 'self'",
    // Images that a user is about to send are shown from memory.
    "img-src 'self' blob:",
    "media-src 'self' blob:",
    ["connect-src 'self'", ...origins].join(" "),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Only compiled templates create markup.
    "require-trusted-types-for 'script'",
    "trusted-types svelte-trusted-html",
  ].join("; ");
}
