import type { AsyncAPIDocument, ChannelItem, Message } from "@portico/core/asyncapi";
import { asyncAPIOf } from "@portico/operator/api-docs/documents";
import { describedSurface } from "../platform/service-pages.ts";
import { DEFAULT_PRESET } from "./preset-table.ts";
import { readSurface } from "./read-surface.ts";

const BEGIN = "<!-- Events: generated from the contracts by `npm run docs:api`; edit the contracts. -->";
const END = "<!-- End of the events. -->";
const SURFACES = ["agent", "workflow"];

/** Updates the tables of events in the page. Throws if a mark is missing. */
export async function withEventReference(page: string): Promise<string> {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("docs/api.md lacks the marks around its events");
  const documents = await Promise.all(SURFACES.map(describe));
  return `${page.slice(0, begin)}${BEGIN}\n\n${documents.flatMap(tablesOf).join("\n\n")}\n\n${page.slice(end)}`;
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
    const head = ["| Event | | Payload |", "| --- | --- | --- |"];
    return [`### ${channel.title}: \`${channel.address}\` (${channel["x-surface"]})`, "", ...head, ...rows].join("\n");
  });
}

function messageAt({ messages }: ChannelItem, reference: string): Message {
  const message = messages[reference.split("/").at(-1)!];
  if (!message) throw new Error(`The reference ${reference} points to nothing`);
  return message;
}

function rowOf(action: string, { name, payload, summary = "" }: Message): string {
  const required = payload.required ?? [];
  const fields = Object.keys(payload.properties ?? {}).map((field) =>
    required.includes(field) ? `\`${field}\`` : `\`${field}\`?`,
  );
  const direction = action === "receive" ? "from the client" : "to the client";
  return `| \`${name}\` | ${direction} | ${fields.join(", ") || summary} |`;
}
