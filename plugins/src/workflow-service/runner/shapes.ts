import { playAgent } from "./shapes/agent.ts";
import { playBranch } from "./shapes/branch.ts";
import { playFail } from "./shapes/fail.ts";
import { playGate } from "./shapes/human-gate.ts";
import { playLoop } from "./shapes/loop.ts";
import { playMap } from "./shapes/map.ts";
import { playWait } from "./shapes/wait.ts";
import { playChild } from "./shapes/workflow.ts";
import type { NodePlay } from "./play-attempts.ts";
import type { NodeResult } from "./play-node.ts";

/** A kind of node that the runner itself plays. */
export interface Shape {
  /** Keys of `with` that are not filled in when the node starts. */
  readonly later?: ReadonlySet<string>;
  play(play: NodePlay): Promise<NodeResult>;
}

/** By type. */
export const shapes: Readonly<Record<string, Shape | undefined>> = {
  branch: { play: playBranch },
  map: { later: new Set(["result"]), play: playMap },
  loop: { later: new Set(["until", "result"]), play: playLoop },
  wait: { play: playWait },
  human_gate: { play: playGate },
  workflow: { play: playChild },
  agent: { play: playAgent },
  fail: { play: playFail },
};
