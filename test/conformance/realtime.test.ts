import { createLoopback, type Loopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { realtimeConformance } from "./realtime.ts";

realtimeConformance("loopback", () => ({
  adapter: loopbackRealtime({ loopback: createLoopback() }),
  connect: (opened, path, hello) => (opened as Loopback).connect(hello, { surface: "agent", path }),
}));
