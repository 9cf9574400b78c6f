import { visibleText } from "@portico/core/contract";
import { createHash } from "node:crypto";

/** Markup: a text that was escaped, or that the code contains. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** Makes markup. Every value is escaped, except markup. Lists are joined; undefined and false are left out. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(parts.reduce((text, part, at) => text + markupOf(values[at - 1]) + part));
}

/** A text of others, isolated from the text around it, with its hidden characters shown. */
export function shown(text: string): Html {
  return html`<bdi>${visibleText(text)}</bdi>`;
}

type Value = string | number | undefined | false | Html | readonly Html[];

function markupOf(value: Value): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.markup;
  if (typeof value === "object") return value.map(({ markup }) => markup).join("");
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

/** A whole page, without scripts. */
export function plainPage(status: number, title: string, main: Html): Response {
  const { markup } = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>${visibleText(title)}</title>
        ${new Html(`<style>${STYLE}</style>`)}
      </head>
      <body>
        <main>${main}</main>
      </body>
    </html> `;
  return new Response(markup, { status, headers: HEADERS });
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1a1d21;--soft:#545b64;--back:#f5f6f7;--card:#fff;--line:#8a929c;--go:#0a6b3d;--stop:#a3231f;--focus:#1557c0;--bad:#a3231f}
@media (prefers-color-scheme:dark){:root{--ink:#e9ecef;--soft:#b4bbc3;--back:#15181b;--card:#1e2226;--line:#7b848e;--go:#1b7f4d;--stop:#b53a35;--focus:#8ab4f8;--bad:#ff9c96}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{max-width:40rem;margin:0 auto;padding:1.5rem 1rem;background:var(--card);min-height:100vh;overflow-wrap:anywhere}
@media (min-width:44rem){main{min-height:0;margin:2rem auto;padding:2rem;border-radius:.5rem}}
h1{margin:0 0 .5rem;font-size:1.5rem;line-height:1.25}
.soft,.hint{color:var(--soft);font-size:.9rem;margin:.25rem 0}
.message{white-space:pre-wrap;margin:1rem 0}
.field{margin:1rem 0}
label{display:block;font-weight:600}
input,select,textarea{width:100%;margin-top:.25rem;padding:.6rem;border:1px solid var(--line);border-radius:.25rem;background:var(--card);color:var(--ink);font:inherit}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
.bad{color:var(--bad);margin:.25rem 0;font-weight:600}
.choices{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.5rem}
button{flex:1 1 8rem;padding:.75rem 1rem;border:0;border-radius:.25rem;font:inherit;font-weight:600;color:#fff;cursor:pointer}
.go{background:var(--go)}
.stop{background:var(--stop)}
`;

/** The page may use this style, and may be sent back where it came from. It may do nothing else. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": POLICY,
  "cache-control": "no-store",
  // The address contains the token.
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;
