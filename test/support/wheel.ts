/**
 * A Python program that packs a module with a function `hello` into a wheel for pip, uv and poetry, in its working directory.
 */
export const makeWheel = (name: string): string => `import zipfile
with zipfile.ZipFile("${name}-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("${name}.py", "def hello():\\n    return 'hello'\\n")
    wheel.writestr("${name}-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: ${name}\\nVersion: 1\\n")
    wheel.writestr("${name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("${name}-1.dist-info/RECORD", "${name}.py,,\\n${name}-1.dist-info/METADATA,,\\n${name}-1.dist-info/WHEEL,,\\n${name}-1.dist-info/RECORD,,\\n")
`;
