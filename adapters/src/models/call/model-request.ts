import type { JsonObject } from "@portico/core/model-protocols";

/** A message of a request, in the format of Messages. */
export interface RequestMessage {
  readonly role: "user" | "assistant" | "system";
  readonly content: readonly JsonObject[];
}

/** A tool that the model may call, in the format of Messages. */
export interface RequestTool {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: JsonObject;
  readonly cache_control?: JsonObject;
}

/**
 * What a model is asked, in the format of Messages, whatever the protocol of its provider is. Each call is converted for its provider and
 * its model by the rules of the model proxy. The model's name and `stream` are set by the call.
 */
export interface ModelRequest {
  readonly system?: string | readonly JsonObject[];
  readonly messages: readonly RequestMessage[];
  readonly tools?: readonly RequestTool[];
  readonly tool_choice?: JsonObject;
  /** Default: the model's own limit. */
  readonly max_tokens?: number;
  /** 0 to 2. A model that takes at most 1 gets 1 for a higher one. */
  readonly temperature?: number;
  readonly stop_sequences?: readonly string[];
  /** `none`: no thinking, for models that can think without being asked. */
  readonly effort?: string;
  /** JSON Schema of the answer's text. */
  readonly outputSchema?: JsonObject;
}
