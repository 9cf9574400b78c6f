import { visibleText } from "@portico/core/contract";
import { COMMENT_LENGTH } from "../limits.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import type { FormField } from "../form-fields.ts";
import { html, type Html, plainPage, shown } from "./plain-page.ts";

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
