// Runs a Node program as an unprivileged user, even if root started it: node as-nobody.mjs <program> [arguments].
process.argv.splice(1, 1);
if (process.getuid() === 0) {
  process.setgroups([]);
  process.setgid(65_534);
  process.setuid(65_534);
}
await import(process.argv[1]);
