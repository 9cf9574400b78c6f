import type { ports } from "@portico/core";
import type { OutputCheck, OutputChecks } from "../../json-schema/output-check.ts";

/** An agent's final answer does not fit its `outputSchema`, also after a correction. The message names places, and no values. */
export class OutputInvalid extends Error {
  override readonly name = "OutputInvalid";
}

/** The `outputSchema` of an agent is not a JSON Schema. */
export class OutputSchemaInvalid extends Error {
  override readonly name = "OutputSchemaInvalid";
}

/** Checks the final answer of one turn by the agent's `outputSchema`. A model whose answer does not fit gets one correction. */
export class AnswerCheck {
  readonly #check: OutputCheck | undefined;
  #correction: readonly ports.ConversationMessage[] = [];

  /** Throws OutputSchemaInvalid. */
  constructor({ outputSchema }: ports.AgentDefinition, checks: OutputChecks) {
    try {
      this.#check = outputSchema && checks.of(outputSchema);
    } catch (cause) {
      throw new OutputSchemaInvalid("The agent's outputSchema is not a JSON Schema", { cause });
    }
  }

  /** The messages that follow the conversation: the answer that did not fit, and the request to correct it. They are not kept. */
  get prompt(): readonly ports.ConversationMessage[] {
    return this.#correction;
  }

  /** Whether the model must correct its answer. Throws OutputInvalid if it did so before, or may not be asked again. */
  mustCorrect(parts: readonly ports.MessagePart[], text: string, mayAsk: boolean): boolean {
    const fault = this.#check && faultOf(text, this.#check);
    if (fault === undefined) return false;
    if (this.#correction.length > 0 || !mayAsk)
      throw new OutputInvalid(`The agent's answer does not fit its outputSchema: ${fault}`);
    const request = `Your answer does not fit the required JSON Schema: ${fault}. Answer again, with the corrected JSON alone.`;
    this.#correction = [
      { role: "assistant", parts: text.trim() === "" ? [{ type: "text", text: "(nothing)" }] : parts },
      { role: "user", parts: [{ type: "text", text: request }] },
    ];
    return true;
  }
}

function faultOf(text: string, check: OutputCheck): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "the output is not JSON";
  }
  return check(value);
}
