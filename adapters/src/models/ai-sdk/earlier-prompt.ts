import { ModelRefusal } from "@portico/core/model-protocols";
import type { Message } from "./language-model.ts";

interface FilePart {
  readonly type: string;
  readonly mediaType: string;
  readonly data: FileData;
}

type FileData =
  | { readonly type: "data"; readonly data: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "url"; readonly url: URL };

/** The same prompt for models of the specification versions 2 and 3, in which files have other forms. */
export function earlierPrompt(prompt: readonly Message[], version: string): readonly Message[] {
  return prompt.map((message): Message => {
    if (message.role === "system") return message;
    return { ...message, content: message.content.map((part) => earlierPart(part as FilePart, version)) };
  });
}

function earlierPart(part: FilePart & { readonly output?: unknown }, version: string): object {
  if (part.type === "file") return { ...part, data: plainData(part.data) };
  if (part.type !== "tool-result") return part;
  const output = part.output as { readonly type: string; readonly value: readonly FilePart[] };
  if (output.type !== "content") return part;
  const value = output.value.map((each) => (each.type === "file" ? earlierResultFile(each, version) : each));
  return { ...part, output: { type: "content", value } };
}

function earlierResultFile({ mediaType, data }: FilePart, version: string): object {
  const bytes = plainData(data);
  if (bytes instanceof URL && version === "v2")
    throw new ModelRefusal("invalid-request", "messages: this provider reads no addresses in results of tools: send the bytes");
  if (bytes instanceof URL) return { type: "file-url", url: bytes.href };
  return { type: version === "v2" ? "media" : "file-data", mediaType, data: bytes };
}

/** A text as its bytes in base64. */
function plainData(data: FileData): string | URL {
  if (data.type === "url") return data.url;
  return data.type === "data" ? data.data : Buffer.from(data.text).toString("base64");
}
