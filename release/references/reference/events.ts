import type { AsyncAPIDocument, ChannelItem, Message } from "@portico/core/asyncapi";
import { asyncAPIOf } from "@portico/operator/api-docs/documents";
import { DEFAULT_PRESET } from "../../../presets/cli/src/preset-table.ts";
import { readSurface } from "../../../presets/cli/src/read-surface.ts";
import { describedSurface } from "../../../presets/src/platform/service-pages.ts";
import { table } from "./table.ts";

const SURFACES = ["agent", "workflow"];

/** Every event of the streams and channels of a platform. */
export async function eventReference(): Promise<string> {
  const documents = await Promise.all(SURFACES.map(describe));
  return documents.flatMap(tablesOf).join("\n\n");
}

async function describe(surface: string): Promise<AsyncAPIDocument> {
  const { areas } = await readSurface({}, { preset: DEFAULT_PRESET, surface });
  return asyncAPIOf(areas, describedSurface(surface));
}

function tablesOf({ channels, operations }: AsyncAPIDocument): string[] {
  return Object.entries(channels).map(([id, channel]) => {
    const rows = Object.values(operations)
      .filter(({ channel: { $ref } }) => $ref === `#/channels/${id}`)
      .flatMap(({ action, messages }) => messages.map(({ $ref }) => rowOf(action, messageAt(channel, $ref))));
    return `## \`${channel.address}\` (${channel["x-surface"]})\n\n${channel.title}.\n\n${table(["Event", "Direction", "Payload"], rows)}`;
  });
}

function messageAt({ messages }: ChannelItem, reference: string): Message {
  const message = messages[reference.split("/").at(-1)!];
  if (!message) throw new Error(`The reference ${reference} points to nothing`);
  return message;
}

function rowOf(action: string, { name, payload, summary = "" }: Message): string[] {
  const required = payload.required ?? [];
  const fields = Object.keys(payload.properties ?? {}).map((field) =>
    required.includes(field) ? `\`${field}\`` : `\`${field}\`?`,
  );
  const direction = action === "receive" ? "from the client" : "to the client";
  return [`\`${name}\``, direction, fields.join(", ") || summary];
}
