import type { ports } from "@portico/core";
import { faultText, type JsonSchema, type SchemaChecks } from "@portico/core/kit";

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
  readonly #schema: ports.AgentDefinition["outputSchema"];
  readonly #checks: SchemaChecks;
  #correction: readonly ports.ConversationMessage[] = [];

  constructor({ outputSchema }: ports.AgentDefinition, checks: SchemaChecks) {
    this.#schema = outputSchema;
    this.#checks = checks;
  }

  /** Throws OutputSchemaInvalid. */
  async ready(signal: AbortSignal): Promise<void> {
    const found = this.#schema && (await this.#checks.inspect(this.#schema, { signal }));
    if (found && "unusable" in found) throw new OutputSchemaInvalid(`The agent's outputSchema cannot be used: ${found.unusable}`);
  }

  /** The messages that follow the conversation: the answer that did not fit, and the request to correct it. They are not kept. */
  get prompt(): readonly ports.ConversationMessage[] {
    return this.#correction;
  }

  /** Whether the model must correct its answer. Throws OutputInvalid if it did so before, or may not be asked again. */
  async mustCorrect(
    parts: readonly ports.MessagePart[],
    text: string,
    { mayAsk, signal }: { readonly mayAsk: boolean; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const fault = this.#schema && (await this.#faultOf(text, this.#schema, signal));
    if (fault === undefined) {
      // The turn may go on after this answer, if its user said something meanwhile.
      this.#correction = [];
      return false;
    }
    if (this.#correction.length > 0 || !mayAsk)
      throw new OutputInvalid(`The agent's answer does not fit its outputSchema: ${fault}`);
    const request = `Your answer does not fit the required JSON Schema: ${fault}. Answer again, with the corrected JSON alone.`;
    this.#correction = [
      { role: "assistant", parts: text.trim() === "" ? [{ type: "text", text: "(nothing)" }] : parts },
      { role: "user", parts: [{ type: "text", text: request }] },
    ];
    return true;
  }

  async #faultOf(text: string, schema: JsonSchema, signal: AbortSignal): Promise<string | undefined> {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return "the output is not JSON";
    }
    const checked = await this.#checks.check(schema, value, { signal });
    if ("unusable" in checked) return checked.unusable;
    return "faults" in checked ? faultText(checked.faults, "the output") : undefined;
  }
}
