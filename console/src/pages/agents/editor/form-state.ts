import type { Choice } from "../../../blocks/CheckList.svelte";
import type { TextProblem } from "../../../blocks/text-editing/stored-text.ts";
import type { JsonPath } from "./agent-form.ts";

/** What an `agent.json` can name here. A list is empty if the service does not tell it: then any text is taken. */
export interface AgentChoices {
  readonly providers: readonly { readonly id: string; readonly models: readonly string[] }[];
  readonly engines: readonly string[];
  readonly tools: readonly Choice[];
  readonly skills: readonly Choice[];
}

/** What the fields of the form share. */
export interface FormState {
  /** The object of the text. */
  readonly present: Readonly<Record<string, unknown>>;
  readonly problems: readonly TextProblem[];
  readonly choices: AgentChoices;
  /** Writes a value into the text; `undefined` removes it. Returns what is wrong, if it cannot be written. */
  readonly edit: (path: JsonPath, value: unknown) => string | undefined;
}
