/** Runs one command line to its end. */
export async function main(program: "io" | "swarm", args: readonly string[]): Promise<void> {
  console.log(program, args.length);
}
