import type { JsonObject } from "@portico/core/model-protocols";

/**
 * What this product uses of a LanguageModel of the AI SDK, in the form of its specification version 4 (`@ai-sdk/provider`, src/language-model/v4).
 * Declared here, because the package that the user installs brings its own types.
 */
export interface LanguageModel {
  readonly specificationVersion: string;
  /** Addresses that the provider itself reads, by type of media. */
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls>;
  doGenerate(options: CallOptions): PromiseLike<Generated>;
  doStream(options: CallOptions): PromiseLike<{ readonly stream: ReadableStream<StreamPart> }>;
}

export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** Data that only one provider understands, under the name of the provider. */
export type Metadata = Readonly<Record<string, JsonObject>>;

export interface CallOptions {
  readonly prompt: readonly Message[];
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly responseFormat?: { readonly type: "json"; readonly schema: JsonObject } | undefined;
  readonly tools?: readonly object[] | undefined;
  readonly toolChoice?: { readonly type: string; readonly toolName?: string } | undefined;
  readonly reasoning?: string | undefined;
  readonly abortSignal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly providerOptions?: Metadata | undefined;
}

export type Message =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user" | "assistant" | "tool"; readonly content: readonly object[] };

/** A part of a stream. The fields depend on `type`. */
export interface StreamPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface Generated {
  readonly content: readonly StreamPart[];
  readonly finishReason: unknown;
  readonly usage: unknown;
  readonly warnings?: unknown;
  readonly providerMetadata?: unknown;
}

/** Versions of the specification that can be served. The differences are in `earlier-prompt.ts` and `answer-pieces.ts`. */
export const SPECIFICATIONS: readonly string[] = ["v2", "v3", "v4"];
