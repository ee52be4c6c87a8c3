/* A library that throws, and catches what it throws. */
static int thrown(int number)
{
    throw number;
}

extern "C" int caught(int number)
{
    try {
        return thrown(number);
    } catch (int what) {
        return what + 1;
    }
}
