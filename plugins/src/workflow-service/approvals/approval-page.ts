import { createHash } from "node:crypto";
import { visibleText } from "@portico/core/contract";
import { COMMENT_LENGTH } from "../contracts/limits.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import type { FormField } from "./form-fields.ts";

/** The names of the controls that are not fields of the gate's form. */
export const DECISION = "decision";
export const COMMENT = "comment";

/** The name of the control of a field. No field can have the name of another control. */
export function controlName(field: string): string {
  return `value.${field}`;
}

/** A page that asks for the decision of a gate. */
export interface AskedDecision {
  readonly gate: Gate;
  readonly fields: readonly FormField[];
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** The text of a control. */
  draftOf(control: string): string;
  /** Problems of an earlier answer by field; `undefined`: of the whole answer. */
  readonly problems: ReadonlyMap<string | undefined, string>;
}

/** Shows the question of a gate and a form for the decision. With problems, the status is 400. */
export function askPage({ gate, fields, expiresAt, draftOf, problems }: AskedDecision): Response {
  const whole = problems.get(undefined);
  const status = problems.size > 0 ? 400 : 200;
  return plainPage(
    status,
    gate.title,
    html` <h1 dir="auto">${visibleText(gate.title)}</h1>
      <p class="soft">Asked ${time(gate.requestedAt)}. This link works once, until ${time(new Date(expiresAt).toISOString())}.</p>
      ${status === 400 && html`<p class="bad" role="alert">Nothing was decided: ${shown(whole ?? "correct the marked fields")}.</p>`}
      ${gate.message !== "" && html`<div class="message" dir="auto">${visibleText(gate.message)}</div>`}
      <form method="post" accept-charset="utf-8" autocomplete="off">
        <button type="submit" disabled hidden></button>
        ${fields.map((field, at) => fieldOf(field, { id: `field-${at}`, gate, draft: draftOf(controlName(field.name)), problem: problems.get(field.name) }))}
        <div class="field">
          <label for="comment">Comment (optional)</label>
          <textarea id="comment" name="${COMMENT}" rows="3" maxlength="${COMMENT_LENGTH}" dir="auto">
${draftOf(COMMENT)}</textarea>
        </div>
        <div class="choices">
          <button class="go" type="submit" name="${DECISION}" value="approve">Approve</button>
          <button class="stop" type="submit" name="${DECISION}" value="reject" formnovalidate>Reject</button>
        </div>
      </form>`,
  );
}

/** A page without a form. */
export function endPage(status: number, title: string, says: string | Html): Response {
  return plainPage(
    status,
    title,
    html`<h1>${title}</h1>
      <p>${says}</p>`,
  );
}

/** A time for people who may be anywhere. */
export function time(at: string): Html {
  return html`<time datetime="${at}">${at.slice(0, 16).replace("T", " ")} UTC</time>`;
}

interface Shown {
  readonly id: string;
  readonly gate: Gate;
  readonly draft: string;
  readonly problem: string | undefined;
}

function fieldOf(field: FormField, { id, gate, draft, problem }: Shown): Html {
  const { title, hint, isRequired } = field;
  const described = [hint !== undefined && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean).join(" ");
  // Without `required` on controls: a person who rejects need not fill them in.
  const about = html`id="${id}"
  name="${controlName(field.name)}"${described !== "" && html` aria-describedby="${described}"`}${problem !== undefined && html` aria-invalid="true"`}`;
  return html`<div class="field">
    <label for="${id}">${shown(title)}${!isRequired && " (optional)"}</label>
    ${hint !== undefined && html`<p class="hint" id="${id}-hint" dir="auto">${visibleText(hint)}</p>`}
    ${problem !== undefined && html`<p class="bad" id="${id}-problem">${shown(problem)}</p>`}
    ${controlOf(field, about, { draft, isSecret: isSecret(gate, field.name) })}
    ${!isSecret(gate, field.name) && visibleText(draft) !== draft && html`<p class="bad">Hidden characters: ${shown(draft)}</p>`}
  </div>`;
}

function controlOf(
  { control }: FormField,
  about: Html,
  { draft, isSecret: hides }: { readonly draft: string; readonly isSecret: boolean },
): Html {
  if (control.kind === "choice") {
    const options = control.choices.map((choice) => {
      const value = JSON.stringify(choice);
      return html`<option value="${value}" ${value === draft && html` selected`}>${visibleText(labelOf(choice))}</option>`;
    });
    return html`<select ${about}>
      <option value="">—</option>
      ${options}
    </select>`;
  }
  if (hides) return html`<input ${about} type="password" autocomplete="off" />`;
  if (control.kind === "number") return html`<input ${about} type="number" step="${control.step}" value="${draft}" />`;
  const isLong = control.kind === "json" || control.isLong;
  return isLong
    ? html`<textarea ${about} rows="4" dir="auto">${draft}</textarea>`
    : html`<input ${about} type="text" dir="auto" value="${draft}" />`;
}

function labelOf(choice: unknown): string {
  if (typeof choice === "boolean") return choice ? "Yes" : "No";
  return typeof choice === "string" ? choice : JSON.stringify(choice);
}

/** Whether the gate's definition marks the value as secret: then it is not shown while it is typed, and never sent back. */
function isSecret({ sensitive }: Gate, name: string): boolean {
  if (sensitive === undefined) return false;
  return (
    sensitive === true ||
    sensitive.some(
      (path) => ["values", "values.*"].includes(path) || path === `values.${name}` || path.startsWith(`values.${name}.`),
    )
  );
}

/** Markup: a text that was escaped, or that the code contains. */
class Html {
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
function shown(text: string): Html {
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
function plainPage(status: number, title: string, main: Html): Response {
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
