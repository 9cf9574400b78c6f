import { loadOracle } from "./oracle.ts";

/** A client of the Messages protocol, as the libraries of its vendor have it. Types are checked without `test/oracles`. */
export interface MessagesClient {
  readonly baseURL: string;
  readonly messages: MessagesResource;
  readonly beta: { readonly messages: MessagesResource };
}

interface MessagesResource {
  create(body: object): Promise<unknown>;
  stream(body: object): { finalMessage(): Promise<unknown> };
}

type MessagesClientClass = new (options: object) => MessagesClient;

interface AwsClient {
  send(command: object): Promise<{ readonly body: Uint8Array & AsyncIterable<AwsFrame> }>;
  readonly config: { endpointProvider(parameters: object): { readonly url: URL } };
}

/** One frame of a stream. */
export interface AwsFrame {
  readonly chunk?: { readonly bytes: Uint8Array };
}

/** The vendors' own libraries for models in their clouds: what we use of them. */
export interface CloudLibraries {
  readonly AnthropicBedrock: MessagesClientClass;
  readonly AnthropicVertex: MessagesClientClass;
  readonly BedrockRuntimeClient: new (options: object) => AwsClient;
  readonly InvokeModelCommand: new (input: object) => object;
  readonly InvokeModelWithResponseStreamCommand: new (input: object) => object;
  readonly NodeHttpHandler: new () => object;
}

/** Needs the tools of `test/oracles`. */
export async function loadCloudLibraries(): Promise<CloudLibraries> {
  const names = [
    "@anthropic-ai/bedrock-sdk",
    "@anthropic-ai/vertex-sdk",
    "@aws-sdk/client-bedrock-runtime",
    "@smithy/node-http-handler",
  ];
  return Object.assign({}, ...(await Promise.all(names.map((name) => loadOracle<object>(name))))) as CloudLibraries;
}
