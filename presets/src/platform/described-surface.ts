import type { DescribedSurface } from "@portico/plugins/api-docs/documents";
import { VERSION } from "./version.ts";

const TITLES: Readonly<Record<string, string>> = {
  proxy: "Portico model proxy",
  workflow: "Portico workflow service",
  agent: "Portico agent service",
  probes: "Portico probes",
};

/** All presets with realtime channels serve them with Socket.IO. */
const TRANSPORT =
  "Socket.IO, version 4 of its client protocol. Connect to this path, with the message `connect` as `auth`. Each other message is an event of the same name, with the payload as first argument. If an event has a second argument, it is the client's position, to be sent on reconnection.";

/** The parts of the documents of a preset's surface that contracts do not contain. */
export function describedSurface(surface: string): DescribedSurface {
  return { surface, title: TITLES[surface] ?? `Portico: ${surface}`, version: VERSION, transport: TRANSPORT };
}
