/** Thrown if a node was running when its process ended, and must not be repeated. This ends the run. */
export class NodeInterrupted extends Error {
  override readonly name = "NodeInterrupted";
  readonly nodeId: string;

  constructor(nodeId: string) {
    super(`Node ${nodeId} was running when its process ended, and must not be repeated`);
    this.nodeId = nodeId;
  }
}
